/** Programs of `node:dgram`, plain, relinked and mixed: the same datagrams, senders, callbacks and order. */
import t, { type Test } from 'tap'
import type { DatagramTransport } from '../../../fastsockets/datagram/datagram-transport.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'

const env = { ...plainEnvironment(), FASTSOCKETS_DATAGRAMS: 'fast' }

type Mode = 'plain' | 'relinked'

function start(t: Test, mode: Mode, ...args: string[]): Child {
  return new Child(t, program('datagrams'), args, mode === 'relinked' ? relinked({ env }) : {})
}

/** Both directions of the pair go through shared memory. */
async function untilFast(client: Child): Promise<void> {
  await eventually('the pair to be fast', async () => {
    await client.ask({ echoes: 50 })
    const { pairs } = await client.ask<DatagramTransport>({ pairs: true })
    return pairs.some(({ sends, receives }) => sends === 'shm' && receives === 'shm')
  })
}

/** What a client sees, with the ports that differ from run to run replaced. */
async function run(
  t: Test,
  modes: readonly [Mode, Mode],
  type: string,
  bound: string,
  address: string,
): Promise<unknown> {
  const server = start(t, modes[0], 'echo', type, bound)
  const { port } = await server.receive<{ port: number }>()
  const client = start(t, modes[1], 'client', type, '', address, String(port))
  const first = await client.ask({ echoes: 3 })
  const isFast = modes.every(mode => mode === 'relinked')
  if (isFast) await untilFast(client)
  else await client.ask({ echoes: 300 })
  const sizes = await client.ask({ sizes: true })
  const burst = await client.ask({ burst: 100 })
  for (const child of [client, server]) {
    const { transport } = await child.ask<DatagramTransport>({ pairs: true })
    t.equal(transport, isFast ? 'shm' : 'udp', `${modes.join(' and ')}: ${transport}`)
  }
  const seen = JSON.stringify({ first, sizes, burst })
  await client.kill()
  await server.kill()
  return JSON.parse(
    seen.replaceAll(`"port":${port}`, '"port":"server"').replace(/"port":\d+/g, '"port":"client"'),
  )
}

const PLACES = [
  ['udp4', '127.0.0.1', '127.0.0.1'],
  ['udp4', '0.0.0.0', '127.0.0.1'],
  ['udp6', '::1', '::1'],
  ['udp6', '::', '::1'],
] as const

for (const [type, bound, address] of PLACES)
  t.test(`an echo at ${bound}, asked at ${address}`, async t => {
    const plain = await run(t, ['plain', 'plain'], type, bound, address)
    for (const modes of [
      ['relinked', 'relinked'],
      ['relinked', 'plain'],
      ['plain', 'relinked'],
    ] as const)
      t.strictSame(await run(t, modes, type, bound, address), plain, modes.join(' and '))
  })
