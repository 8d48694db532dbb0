/**
 * A program without the right to use the network connects to no server, in no way, and gets the errors of a plain
 * program.
 */
import t from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

type Told = Record<'before' | 'after', Record<string, unknown>> & { readonly wires: readonly string[] }

const RIGHTS = ['--permission', '--allow-net', '--allow-fs-read=*', '--allow-fs-write=*', '--allow-addons']
const skip =
  !process.allowedNodeEnvironmentFlags.has('--allow-net') &&
  `Node ${process.version} does not ask for the right to use the network`
const DENIED = { code: 'ERR_ACCESS_DENIED' }

t.test('no road is left when the right to use the network is given up', { skip }, async t => {
  const options = { execArgv: RIGHTS }
  const plain = await new Child(t, program('dropped'), ['plain'], options).receive<Told>()
  const fast = await new Child(t, program('dropped'), [], relinked(options)).receive<Told>()
  t.strictSame(plain.wires, ['tcp'])
  t.strictSame(fast.wires, ['loopback'])
  const { raw, endpoint, map, ...sockets } = fast.before
  t.strictSame({ raw, endpoint, map }, { raw: 'done', endpoint: 'done', map: 'done' })
  t.strictSame(sockets, plain.before)
  const { raw: rawAfter, endpoint: endpointAfter, map: mapAfter, ...socketsAfter } = fast.after
  t.strictSame(socketsAfter, plain.after)
  t.match(plain.after, { connect: [DENIED, 'close'] })
  t.match(
    { rawAfter, endpointAfter, mapAfter },
    { rawAfter: DENIED, endpointAfter: DENIED, mapAfter: DENIED },
  )
})
