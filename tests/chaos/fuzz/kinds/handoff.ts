/** The handoff of the shm driver: requests to the offering side, answers with descriptors of anything to the connecting side. */
import { openSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Driver, drivers } from '../../../../nic/index.ts'
import { F_SEAL_GROW, F_SEAL_SHRINK } from '../../../../nic/posix/constants.ts'
import { RING_SIZE_MIN } from '../../../../nic/ring/ring-layout.ts'
import { segmentBytes } from '../../../../nic/shm/segment.ts'
import { answerBytes, Caller, FakeOfferer, openMemfd } from '../../../support/handoff.ts'
import type { Random } from '../../../support/random.ts'
import type { Attack, Kind } from '../kind.ts'
import { spoil } from '../spoil.ts'

const AT_ONCE = 8
const TIMEOUT_MS = 500
/** Turns after which a caller that has sent too little is given up. */
const TURNS_MAX = 20
const SEALS = F_SEAL_SHRINK | F_SEAL_GROW
const SIZE = segmentBytes(RING_SIZE_MIN)

/** A user who passes more descriptors that are no memory is refused from then on, and we are the same user. */
const STRANGE_MAX = 4
let strange = 0

/** A descriptor of memory of every size with any seals, and a few of a device, a folder, a file. */
function someDescriptor(random: Random): number {
  const what = random.within(strange++ < STRANGE_MAX ? 0 : 3, 9)
  if (what === 0) return openSync('/dev/zero', 'r+')
  if (what === 1) return openSync('/proc', 'r')
  if (what === 2) return openSync('/proc/self/status', 'r')
  if (what === 3) return openMemfd(SIZE, random.pick([0, F_SEAL_SHRINK, F_SEAL_GROW]))
  if (what < 6) return openMemfd(random.pick([0, 1, 4096, SIZE - 1, SIZE + 1, 2 * SIZE]), SEALS)
  return openMemfd(SIZE, SEALS)
}

/** Undefined if too many wait there already. */
function callerOf(blob: Uint8Array): Caller | undefined {
  try {
    return new Caller(blob)
  } catch {
    return undefined
  }
}

export const handoff: Kind = {
  name: 'handoff',
  what: 'requests, answers and descriptors of the shm handoff, to both of its sides',
  reaches: ['request', 'taken up', 'answer', 'refused', 'connected'],
  absence() {
    const availability = (drivers.get('shm') as Driver).availability()
    return availability.usable ? undefined : availability.reason
  },
  async open() {
    const shm = drivers.get('shm') as Driver

    /** A caller sends the offering side random bytes. */
    const callOfferer = async ({ random, count }: Attack): Promise<void> => {
      const offer = shm.offer({ queueSize: RING_SIZE_MIN, timeoutMs: TIMEOUT_MS })
      let isOver = false
      const taken = offer.accepted.then(
        end => {
          isOver = true
          count('taken up')
          end.close()
        },
        () => {},
      )
      const caller = callerOf(offer.blob)
      if (caller === undefined) {
        count('busy')
        offer.cancel()
        await nextTurn()
        return await taken
      }
      caller.say(spoil(random, caller.request()))
      count('request')
      for (let i = 0; i < TURNS_MAX && !isOver && !caller.isHungUp(); i++) await nextTurn()
      caller.close()
      offer.cancel()
      await taken
    }

    /** The connecting side gets random bytes as its answer. */
    const answerConnector = async ({ random, count }: Attack): Promise<void> => {
      const offerer = new FakeOfferer()
      const connecting = shm.connect(offerer.blob, { timeoutMs: TIMEOUT_MS }).then(
        end => {
          count('connected')
          end.close()
        },
        () => count('refused'),
      )
      await offerer.takeRequest()
      const descriptors = Array.from({ length: random.pick([1, 1, 1, 1, 0, 2, 3]) }, () =>
        someDescriptor(random),
      )
      try {
        offerer.answer(spoil(random, answerBytes()), descriptors)
        count('answer')
      } catch {
        // A busy machine: the other side has given up.
        count('late')
      }
      offerer.hangUp()
      await connecting
      offerer.close()
    }

    return {
      async attack(attack: Attack) {
        let left = attack.inputs
        const work = async (): Promise<void> => {
          while (left-- > 0) await (attack.random.chance(0.7) ? callOfferer(attack) : answerConnector(attack))
        }
        await Promise.all(Array.from({ length: AT_ONCE }, work))
      },
      async honest() {
        const offer = shm.offer()
        const ends = await Promise.all([offer.accepted, shm.connect(offer.blob)])
        for (const end of ends) end.close()
      },
    }
  },
}
