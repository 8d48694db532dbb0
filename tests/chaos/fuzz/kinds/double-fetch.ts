/**
 * Double fetches: a second thread changes words of the ring all the time, also between two loads of one poll. Code that looks twice
 * at a word that it has checked, and uses what it saw the second time, reads or writes outside the ring.
 */
import { Worker } from 'node:worker_threads'
import { BROKEN, NO_RESOURCE } from '../../../../nic/index.ts'
import { RING_SIZE_MIN, ringBytes } from '../../../../nic/ring/ring-layout.ts'
import { RingMemory } from '../../../support/ring-memory.ts'
import { SuspiciousSink } from '../../../support/ring-scribbles.ts'
import type { Attack, Kind } from '../kind.ts'
import { exchange } from './ring-words.ts'

export const STATE = { isFlipping: 0, flips: 1, seed: 2 } as const
const STATE_WORDS = 4
/** Looks between two of which the ring is made anew, if it is not broken before. */
const LOOKS_MAX = 200
const FRAMES = 8

export const doubleFetch: Kind = {
  name: 'double-fetch',
  what: 'words of a ring that a second thread changes while they are being read',
  reaches: ['frame', 'broken', 'room', 'flip'],
  async open() {
    const memory = new SharedArrayBuffer(ringBytes(RING_SIZE_MIN))
    const state = new Int32Array(new SharedArrayBuffer(4 * STATE_WORDS))
    const worker = new Worker(new URL('../flipping-worker.js', import.meta.url), {
      workerData: { memory, state },
    })
    worker.unref()
    await new Promise(resolve => worker.once('message', resolve))
    const flip = (isOn: boolean): void => {
      Atomics.store(state, STATE.isFlipping, Number(isOn))
      Atomics.notify(state, STATE.isFlipping)
    }
    /** The words of the last ring are gone; those that the worker still writes are part of the attack. */
    const newRing = (): RingMemory => {
      new Uint8Array(memory).fill(0)
      // Both halves take any memory; their type knows only the kind that is not shared between threads.
      return new RingMemory(RING_SIZE_MIN, memory as unknown as ArrayBuffer)
    }
    return {
      attack({ random, inputs, victim, count, wrong }: Attack) {
        const before = Atomics.load(state, STATE.flips)
        Atomics.store(state, STATE.seed, random.word())
        flip(true)
        // A thread takes its time to wake up.
        while (Atomics.load(state, STATE.flips) === before) Atomics.wait(state, STATE.flips, before, 10)
        try {
          for (let looks = 0; looks < inputs; ) {
            const ring = newRing()
            const sink = new SuspiciousSink(ring, random)
            for (let i = 0; i < FRAMES; i++) ring.send(random.within(0, 200))
            for (let i = 0; i < LOOKS_MAX && looks < inputs; i++, looks++) {
              sink.calls = 0
              const polled = victim(() => ring.consumer.poll(sink, FRAMES))
              if (polled !== BROKEN && !(polled >= 0 && polled <= FRAMES)) wrong(`poll returned ${polled}`)
              if (sink.calls > FRAMES) wrong(`${sink.calls} calls with a limit of ${FRAMES}`)
              count('frame', sink.calls)
              const length = random.within(0, 200)
              const at = victim(() => ring.producer.reserve(length))
              if (at >= 0 && (at % 8 !== 0 || at < 8 || at + length > RING_SIZE_MIN))
                wrong(`reserved at ${at}`)
              if (at < 0 && at !== NO_RESOURCE && at !== BROKEN) wrong(`reserve returned ${at}`)
              if (at >= 0) {
                ring.producer.commit(length)
                count('room')
              }
              if (ring.consumer.violation === undefined && ring.producer.violation === undefined) continue
              count('broken')
              looks++
              break
            }
            for (const complaint of sink.complaints) wrong(complaint)
          }
        } finally {
          flip(false)
        }
        count('flip', (Atomics.load(state, STATE.flips) - before) >>> 0)
      },
      honest: () => exchange(new RingMemory()),
      async close() {
        await worker.terminate()
      },
    }
  },
}
