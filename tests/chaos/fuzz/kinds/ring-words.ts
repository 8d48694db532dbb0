/** Words of a ring, between two looks of its consumer or producer, and while a frame is being handled. */
import { BROKEN, NO_RESOURCE } from '../../../../nic/index.ts'
import { RING_SIZE_MIN } from '../../../../nic/ring/ring-layout.ts'
import { RingMemory } from '../../../support/ring-memory.ts'
import { FRAME_MAX, ringInUse, SuspiciousSink, scribble } from '../../../support/ring-scribbles.ts'
import type { Attack, Kind } from '../kind.ts'

/** Words that one ring takes before a new one is there. */
const WORDS_EACH = 20

export const ringWords: Kind = {
  name: 'ring-words',
  what: 'random words in a ring, to its consumer and its producer',
  reaches: ['frame', 'consumer broken', 'producer broken', 'room'],
  open: () => ({
    attack({ random, inputs, victim, count, wrong }: Attack) {
      for (let i = 0; i < inputs; i += WORDS_EACH) {
        const ring = ringInUse(random)
        const sink = new SuspiciousSink(ring, random)
        const { consumer, producer } = ring
        for (let word = 0; word < WORDS_EACH; word++) {
          scribble(ring, random)
          if (word % 2 === 0) {
            const limit = random.within(0, 100)
            sink.calls = 0
            const polled = victim(() => consumer.poll(sink, limit))
            if (!(polled >= 0 && polled <= limit) && polled !== BROKEN) wrong(`poll returned ${polled}`)
            if (sink.calls > limit) wrong(`${sink.calls} calls with a limit of ${limit}`)
            if (polled === BROKEN && consumer.violation === undefined) wrong('broken without a reason')
            consumer.arm()
            consumer.disarm()
            count('frame', sink.calls)
          } else {
            const length = random.within(0, FRAME_MAX)
            const at = victim(() => producer.reserve(length))
            if (at >= 0 && (at % 8 !== 0 || at < 8 || at + length > RING_SIZE_MIN)) wrong(`reserved at ${at}`)
            if (at < 0 && at !== NO_RESOURCE && at !== BROKEN) wrong(`reserve returned ${at}`)
            if (at >= 0) {
              producer.commit(length)
              count('room')
            }
            producer.armForRoom(length)
            producer.disarm()
          }
        }
        if (consumer.violation !== undefined) count('consumer broken')
        if (producer.violation !== undefined) count('producer broken')
        for (const complaint of sink.complaints) wrong(complaint)
      }
    },
    honest: () => exchange(new RingMemory()),
  }),
}

/** One frame through a ring. */
export function exchange(ring: RingMemory): void {
  const lengths: number[] = []
  if (!ring.send(100)) throw new Error('there is no room')
  ring.consumer.poll({ handleFrame: (_bytes, _offset, length) => void lengths.push(length) }, 1)
  if (lengths[0] !== 100) throw new Error(`frames of ${lengths}`)
}
