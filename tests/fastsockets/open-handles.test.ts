/** What detectors of open handles find: the same plain and relinked, and nothing that fast sockets have for themselves. */
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { Child, plainEnvironment } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

type Steps = Record<string, string[]>
interface Place {
  readonly place: string | number
}

/** The ways of a relinked program: Node's own sockets at first, sockets that may move, and fast ones. */
const FAST_MODES = Object.entries({
  light: { FASTSOCKETS_START: 'tcp' },
  moving: { FASTSOCKETS_START: 'tcp', FASTSOCKETS_ABLATE: 'price=0' },
  fast: { FASTSOCKETS_START: 'fast' },
}).map(([name, variables]) => [name, relinked({ env: { ...plainEnvironment(), ...variables } })] as const)
const PROGRAM = program('open-handles')

/** Looks at a step; what passes by itself, as a handshake, may take so many on a busy machine. */
const LOOKS_MAX = 100

/** The child is at its next step: looks again while it differs from the `expected` one. */
async function readStep(child: Child, seen: Steps, expected?: Steps): Promise<void> {
  for (let looks = 1; ; looks++) {
    const step = await child.receive<Steps>()
    Object.assign(seen, step)
    const [name = ''] = Object.keys(step)
    if (expected === undefined || isDeepStrictEqual(step[name], expected[name]) || looks === LOOKS_MAX) return
    child.send({ again: true })
  }
}

async function goOn(child: Child, seen: Steps, expected?: Steps): Promise<void> {
  child.send({})
  await readStep(child, seen, expected)
}

async function inOneProcess(
  t: Test,
  kind: string,
  path: string,
  mode: object,
  expected?: Steps,
): Promise<Steps> {
  const child = new Child(t, PROGRAM, ['both', kind, path], mode)
  const seen: Steps = {}
  await child.receive()
  await child.receive<Place>()
  await readStep(child, seen, expected)
  for (const _ of ['connected', 'closed', 'stopped']) await goOn(child, seen, expected)
  child.send({})
  t.match(await child.end(), { code: 0, signal: null })
  return seen
}

async function inTwoProcesses(
  t: Test,
  kind: string,
  path: string,
  mode: object,
  [expected, expectedOfClient]: Steps[] = [],
): Promise<Steps[]> {
  const [atServer, atClient]: [Steps, Steps] = [{}, {}]
  const server = new Child(t, PROGRAM, ['serve', kind, path], mode)
  await server.receive()
  const { place } = await server.receive<Place>()
  await readStep(server, atServer, expected)
  const client = new Child(t, PROGRAM, ['call', kind, String(place)], mode)
  await client.receive()
  await readStep(client, atClient, expectedOfClient)
  await goOn(server, atServer, expected)
  await goOn(client, atClient, expectedOfClient)
  await goOn(server, atServer, expected)
  await goOn(server, atServer, expected)
  for (const child of [client, server]) {
    child.send({})
    t.match(await child.end(), { code: 0, signal: null })
  }
  return [atServer, atClient]
}

for (const kind of ['tcp', 'unix', 'http']) {
  const wrap = kind === 'unix' ? 'PIPE' : 'TCP'
  t.test(`${kind}, in one process`, async t => {
    const folder = t.testdir({})
    const plain = await inOneProcess(t, kind, join(folder, 'plain'), {})
    t.ok(plain.listening?.includes(`${wrap}SERVERWRAP by a line`), 'the server is named, with its line')
    t.ok(plain.connected?.includes(`${wrap}WRAP by a line`), 'the socket is named, with its line')
    t.notOk(plain.closed?.includes(`${wrap}WRAP by a line`), 'and not once it is closed')
    for (const [name, mode] of FAST_MODES)
      t.strictSame(await inOneProcess(t, kind, join(folder, name), mode, plain), plain, name)
  })
  t.test(`${kind}, in two processes`, async t => {
    const folder = t.testdir({})
    const plain = await inTwoProcesses(t, kind, join(folder, 'plain'), {})
    t.ok(plain[1]?.connected?.includes(`${wrap}WRAP by a line`), 'the socket is named, with its line')
    for (const [name, mode] of FAST_MODES)
      t.strictSame(await inTwoProcesses(t, kind, join(folder, name), mode, plain), plain, name)
  })
}
