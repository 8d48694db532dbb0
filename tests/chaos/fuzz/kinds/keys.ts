/** Keys of registered memory, as a peer may have made them: what is behind them need not be there. */
import {
  type CompletionSink,
  type Driver,
  drivers,
  OK,
  type Registration,
  type RemoteMemory,
  type VirtualInterface,
} from '../../../../nic/index.ts'
import type { Attack, Kind } from '../kind.ts'
import { spoil } from '../spoil.ts'

const SIZE = 4096
/** Keys that are malformed, of a missing segment, and of one whose descriptor did not come. */
const REFUSALS: readonly string[] = ['ERR_NIC_ARGUMENT', 'ERR_NIC_UNAVAILABLE', 'ERR_NIC_PROTOCOL_VIOLATION']

/** One end, memory of its own, and a key of its peer's. */
interface Way {
  readonly near: VirtualInterface
  readonly local: Registration
  readonly good: Buffer
}

export const keys: Kind = {
  name: 'keys',
  what: 'keys of registered memory, which are imported and read from',
  reaches: ['imported', 'refused'],
  absence() {
    const availability = (drivers.get('shm') as Driver).availability()
    return availability.usable ? undefined : availability.reason
  },
  async open() {
    const shm = drivers.get('shm') as Driver
    const pairs: [near: VirtualInterface, far: VirtualInterface][] = []
    // Keys of segments, which are mapped, and of a process's memory, which is read where both sides ask for that.
    for (const options of [{ sharesMemory: true }, { readsPeer: true }]) {
      const offer = shm.offer(options)
      pairs.push(await Promise.all([offer.accepted, shm.connect(offer.blob, options)]))
    }
    // It may only be read: a key of process memory would be of this very process.
    const access = { remoteRead: true, remoteWrite: false }
    const segment = shm.allocate?.(SIZE, false)
    if (segment === undefined) throw new Error('there is no memory to share')
    const target = Buffer.alloc(SIZE)
    const ways = pairs.map(([near, far], i) => ({
      near,
      local: near.register(target, { remoteRead: false, remoteWrite: false }),
      good: Buffer.from(far.register(i === 0 ? segment : Buffer.alloc(SIZE), access).key),
    }))
    let ends = 0
    const sink: CompletionSink = { handleCompletion: () => void ends++ }
    return {
      attack({ random, inputs, victim, count, wrong }: Attack) {
        for (let i = 0; i < inputs; i++) {
          const { near, local, good } = random.pick(ways as [Way, Way])
          const key = spoil(random, good)
          let memory: RemoteMemory
          try {
            memory = victim(() => near.importKey(key))
          } catch (error) {
            if (!REFUSALS.includes((error as NodeJS.ErrnoException).code ?? '')) throw error
            count('refused')
            continue
          }
          count('imported')
          const length = Math.min(SIZE, memory.length, random.within(0, SIZE))
          const before = ends
          const offset = random.pick([0, Math.max(0, memory.length - length)])
          const asked = victim(() => near.rdmaRead(local, 0, memory, offset, length, 1))
          if (asked === OK) victim(() => near.pollCompletions(sink, 1))
          if (asked === OK && ends === before) wrong('a read that does not end')
        }
      },
      honest() {
        for (const { near, local, good } of ways) {
          if (near.rdmaRead(local, 0, near.importKey(good), 0, SIZE, 1) !== OK)
            throw new Error('an honest key is refused')
          near.pollCompletions(sink, 1)
        }
      },
      close() {
        for (const end of pairs.flat()) end.close()
      },
    }
  },
}
