/**
 * Worker threads that open shm interfaces, and are stopped in the middle of things. In a process of its own, because
 * the failure to look for ends the process. argv: the name of a scenario, and the seed of its random numbers. Reports its
 * progress, and what came of it.
 */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type Driver, drivers, type VirtualInterface } from '../../../nic/index.ts'
import { loadLibc } from '../../../nic/posix/libc.ts'
import { drain, Handler, patterned, sendFrame } from '../../support/frames.ts'
import { Random } from '../../support/random.ts'
import { descriptorCount, memfdMappingCount } from '../../support/resources.ts'
import { until, withWatchdog } from '../../support/until.ts'

const FRAMES = 2000
const ROUNDS = 20
const LOADS = 30
const shm = drivers.get('shm') as Driver

// The main thread.

const scenarios: Record<string, (random: Random) => Promise<object>> = {
  'main-and-worker': async () => {
    const [end, worker] = await connectWorker('echo')
    const wrong = await exchange(end)
    await worker.terminate()
    end.close()
    return { wrong }
  },

  'two-workers': async () => {
    const offering = start('offer')
    const [blob] = await once(offering, 'message')
    const connecting = start('connect-and-exchange', blob)
    const [wrong] = await once(connecting, 'message')
    await Promise.all([offering.terminate(), connecting.terminate()])
    return { wrong }
  },

  /** Doorbells ring all the time, on both sides, and the worker is stopped whenever it is. */
  'terminate-ringing': async random => {
    let before = 0
    const round = async (): Promise<void> => {
      const [end, worker] = await connectWorker('echo')
      let rings = 0
      end.setDoorbell(() => {
        rings++
        bounce(end)
      })
      end.ref()
      sendFrame(end, patterned(8, 1))
      bounce(end)
      await until('some rings', () => rings > 10)
      await sleep(random.within(0, 3))
      await worker.terminate()
      await until('our end of the connection to go', () => before === 0 || descriptorCount() === before)
      end.close()
    }
    // The first one opens the listener.
    await round()
    before = descriptorCount()
    for (let i = 0; i < ROUNDS; i++) {
      await round()
      process.send?.({ progress: i })
    }
    return { descriptors: descriptorCount() - before, mappings: memfdMappingCount() }
  },

  /** While koffi loads, binds and maps, which is when it would abort the process. */
  'terminate-loading': async random => {
    for (let i = 0; i < LOADS; i++) {
      const worker = start('load-and-connect')
      await once(worker, 'message')
      const waitedUntilMs = performance.now() + random.within(0, 12_000) / 1000
      while (performance.now() < waitedUntilMs);
      await worker.terminate()
      process.send?.({ progress: i })
    }
    return { mappings: memfdMappingCount() }
  },

  'exit-loading': async random => {
    const workers = Array.from({ length: 4 }, () => start('load-and-connect'))
    await Promise.all(workers.map(worker => once(worker, 'message')))
    await sleep(random.within(0, 5))
    process.exit()
  },

  'terminate-nested': async () => {
    const outer = start('start-another')
    await once(outer, 'message')
    const mapped = memfdMappingCount()
    await outer.terminate()
    return { mapped, mappings: memfdMappingCount() }
  },
}

function start(role: string, blob?: Uint8Array): Worker {
  return new Worker(fileURLToPath(import.meta.url), { workerData: { role, blob } })
}

async function connectWorker(role: string): Promise<[VirtualInterface, Worker]> {
  const offer = shm.offer()
  const worker = start(role, offer.blob)
  return [await withWatchdog('the worker', offer.accepted), worker]
}

// Both threads.

/** Sends frames that come back, asleep in between; returns how many came back wrong. */
async function exchange(end: VirtualInterface): Promise<number> {
  const expected: Buffer[] = []
  let wrong = 0
  let rings = 0
  const sink = new Handler(content => {
    if (!expected.shift()?.equals(content)) wrong++
  })
  end.setDoorbell(() => rings++)
  end.ref()
  for (let i = 0; i < FRAMES; i++) {
    expected.push(patterned(i % 500, i))
    sendFrame(end, expected.at(-1) as Buffer)
    const before = rings
    if (end.arm(0)) await until('the echo', () => rings > before)
    end.poll(sink, 64)
  }
  await until('the last echo', () => end.poll(sink, 64) >= 0 && expected.length === 0)
  return wrong
}

/** Sends back whatever has come, and sleeps. */
function bounce(end: VirtualInterface): void {
  do for (const frame of drain(end)) sendFrame(end, frame)
  while (end.state === 'open' && !end.arm(0))
}

function echo(end: VirtualInterface): void {
  end.setDoorbell(() => bounce(end))
  end.ref()
  bounce(end)
}

// A worker.

const roles: Record<string, (blob: Uint8Array) => Promise<void>> = {
  echo: async blob => echo(await shm.connect(blob)),

  offer: async () => {
    const offer = shm.offer()
    parentPort?.postMessage(offer.blob)
    // An offer does not keep a thread alive.
    const alive = setInterval(() => {}, 1000)
    echo(await offer.accepted)
    clearInterval(alive)
  },

  'connect-and-exchange': async blob => {
    parentPort?.postMessage(await exchange(await shm.connect(blob)))
  },

  'load-and-connect': async () => {
    parentPort?.postMessage('loading')
    loadLibc()
    const ends: VirtualInterface[] = []
    for (;;) {
      const offer = shm.offer()
      ends.push(...(await Promise.all([shm.connect(offer.blob), offer.accepted])))
    }
  },

  'start-another': async () => {
    const inner = start('hold')
    inner.on('message', message => parentPort?.postMessage(message))
  },

  hold: async () => {
    const offer = shm.offer()
    const ends = await Promise.all([shm.connect(offer.blob), offer.accepted])
    for (const end of ends) end.ref()
    parentPort?.postMessage('mapped')
  },
}

if (isMainThread) {
  const [, , name = '', seed = '0'] = process.argv
  const report = await scenarios[name]?.(new Random(Number(seed)))
  process.send?.(report ?? {}, () => process.exit())
} else {
  const { role, blob } = workerData as { role: string; blob: Uint8Array }
  await roles[role]?.(blob)
}
