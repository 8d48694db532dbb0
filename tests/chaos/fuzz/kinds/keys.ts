/** Keys of registered memory, as a peer may have made them: what is behind them need not be there. */
import {
  BROKEN,
  type CompletionSink,
  type Driver,
  drivers,
  OK,
  type RemoteMemory,
} from '../../../../nic/index.ts'
import type { Attack, Kind } from '../kind.ts'
import { spoil } from '../spoil.ts'

const SIZE = 4096

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
    const offer = shm.offer()
    const [near, far] = await Promise.all([offer.accepted, shm.connect(offer.blob)])
    const target = Buffer.alloc(SIZE)
    const local = near.register(target, { remoteRead: false, remoteWrite: false })
    // It may only be read: a key of anything else would be of this very process.
    const good = far.register(Buffer.alloc(SIZE, 7), { remoteRead: true, remoteWrite: false })
    let ends = 0
    const sink: CompletionSink = { handleCompletion: () => void ends++ }
    const read = (memory: RemoteMemory, offset: number, length: number): number =>
      near.capabilities.rdmaRead ? near.rdmaRead(local, 0, memory, offset, length, 1) : BROKEN
    return {
      attack({ random, inputs, victim, count, wrong }: Attack) {
        for (let i = 0; i < inputs; i++) {
          const key = spoil(random, Buffer.from(good.key))
          let memory: RemoteMemory
          try {
            memory = victim(() => near.importKey(key))
          } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== 'ERR_NIC_ARGUMENT') throw error
            count('refused')
            continue
          }
          count('imported')
          const length = Math.min(SIZE, memory.length, random.within(0, SIZE))
          const before = ends
          const asked = victim(() =>
            read(memory, random.pick([0, Math.max(0, memory.length - length)]), length),
          )
          if (asked === OK) victim(() => near.pollCompletions(sink, 1))
          if (asked === OK && ends === before) wrong('a read that does not end')
        }
      },
      honest() {
        if (!near.capabilities.rdmaRead) return
        target.fill(0)
        if (read(near.importKey(good.key), 0, SIZE) !== OK) throw new Error('an honest key is refused')
        near.pollCompletions(sink, 1)
        if (target[SIZE - 1] !== 7) throw new Error('an honest key reads something else')
      },
      close() {
        near.close()
        far.close()
      },
    }
  },
}
