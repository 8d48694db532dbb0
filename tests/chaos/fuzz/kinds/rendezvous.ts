/**
 * What endpoints say to each other outside the virtual interface: to a rendezvous, and from a squatter of a rendezvous that an
 * endpoint dials by name.
 */
import { once } from 'node:events'
import net from 'node:net'
import { type Endpoint, openEndpoint } from '../../../../am/index.ts'
import {
  CONTROL_VERSION,
  type ControlMessage,
  decodeControl,
} from '../../../../am/rendezvous/control-messages.ts'
import { decodeName, encodeName, rendezvousPath } from '../../../../am/rendezvous/endpoint-name.ts'
import { drivers } from '../../../../nic/index.ts'
import type { Random } from '../../../support/random.ts'
import type { Attack, Kind } from '../kind.ts'
import { spoilText } from '../spoil.ts'

/** One in so many inputs goes over a real connection. */
const REAL_ONE_IN = 200
const HEX = '0123456789abcdef'
const SILENCE_MS = 50

function goods(name: string): ControlMessage[] {
  const tag = HEX
  return [
    {
      op: 'open',
      version: CONTROL_VERSION,
      to: name.slice(-16),
      from: name,
      drivers: ['shm', 'loopback'],
      credits: 8,
      tag,
    },
    { op: 'offer', driver: 'shm', blob: Buffer.alloc(40, 1).toString('base64'), credits: 8 },
    { op: 'reply', blob: '' },
    { op: 'refuse', code: 'NO_DRIVER', text: 'why not' },
    { op: 'map', id: 1, tag },
    { op: 'mapped', id: 1, isTagRight: true, isReadOnly: false, segment: 100, longMax: 100, key: '' },
    { op: 'unmap', bounced: 0 },
    { op: 'bye' },
  ]
}

function someLines(random: Random, name: string): string {
  const messages = goods(name)
  const lines = Array.from({ length: random.within(1, 4) }, () =>
    spoilText(random, JSON.stringify(messages[random.within(0, messages.length - 1)])),
  )
  return `${lines.join('\n')}${random.chance(0.9) ? '\n' : ''}`
}

export const rendezvousLines: Kind = {
  name: 'rendezvous',
  what: 'control messages of endpoints, also from a squatter of a rendezvous that is dialled',
  reaches: ['message', 'no message', 'caller', 'squatter dialled'],
  async open() {
    const endpoint: Endpoint = await openEndpoint({ tag: 1n })
    // The first offer opens this thread's handoff socket for good: no input may be the first.
    const first = drivers.get('shm')?.offer({ timeoutMs: 1000, allowUid: () => true })
    first?.accepted.catch(() => {})
    first?.cancel()
    const own = decodeName(endpoint.name)
    if (own === undefined) throw new Error(`${endpoint.name} is no name`)
    const squatted = { ...own, thread: HEX.repeat(2), endpoint: HEX }
    let say: () => string = () => ''
    const squatter = net.createServer(socket => {
      socket.on('error', () => {})
      socket.resume()
      socket.write(say())
      setTimeout(() => socket.destroy(), SILENCE_MS)
    })
    squatter.listen({ path: rendezvousPath(squatted.thread) })
    await once(squatter, 'listening')

    const callRendezvous = async (text: string): Promise<void> => {
      const socket = net.connect({ path: rendezvousPath(own.thread) })
      socket.on('error', () => {})
      socket.resume()
      socket.end(text)
      const timer = setTimeout(() => socket.destroy(), SILENCE_MS)
      await new Promise(resolve => socket.once('close', resolve))
      clearTimeout(timer)
    }

    return {
      async attack({ random, inputs, victim, count }: Attack) {
        const name = endpoint.name
        say = () => someLines(random, encodeName(squatted))
        for (let i = 0; i < inputs; i++) {
          const way = random.within(1, REAL_ONE_IN)
          if (way === 1) {
            await callRendezvous(someLines(random, name))
            count('caller')
          } else if (way === 2) {
            await endpoint.map(0, encodeName(squatted)).catch(() => {})
            count('squatter dialled')
          } else {
            const messages = goods(name)
            const line = spoilText(random, JSON.stringify(messages[i % messages.length]))
            count(victim(() => decodeControl(line)) === undefined ? 'no message' : 'message')
          }
        }
        endpoint.unmap(0)
      },
      async honest() {
        const other = await openEndpoint({ tag: 2n })
        let heard = 0
        other.setHandler(1, message => {
          heard = message.word(0)
        })
        await endpoint.map(1, other.name, 2n)
        endpoint.request(1, 1, 42)
        for (let i = 0; i < 1000 && heard === 0; i++) {
          endpoint.poll()
          other.poll()
          await new Promise(resolve => setImmediate(resolve))
        }
        endpoint.unmap(1)
        await other.close()
        if (heard !== 42) throw new Error(`an honest message said ${heard}`)
      },
      async close() {
        squatter.close()
        await endpoint.close()
      },
    }
  },
}
