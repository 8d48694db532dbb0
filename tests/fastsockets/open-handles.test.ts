/** What detectors of open handles find: the same plain and relinked, and nothing that fast sockets have for themselves. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

type Steps = Record<string, string[]>
interface Place {
  readonly place: string | number
}

const MODES = { plain: {}, relinked: relinked() }
const PROGRAM = program('open-handles')

/** The child is at its next step. */
async function readStep(child: Child, seen: Steps): Promise<void> {
  Object.assign(seen, await child.receive<Steps>())
}

async function goOn(child: Child, seen: Steps): Promise<void> {
  child.send({})
  await readStep(child, seen)
}

async function inOneProcess(t: Test, kind: string, path: string, mode: object): Promise<Steps> {
  const child = new Child(t, PROGRAM, ['both', kind, path], mode)
  const seen: Steps = {}
  await child.receive()
  await child.receive<Place>()
  await readStep(child, seen)
  for (const _ of ['connected', 'closed', 'stopped']) await goOn(child, seen)
  child.send({})
  t.match(await child.end(), { code: 0, signal: null })
  return seen
}

async function inTwoProcesses(t: Test, kind: string, path: string, mode: object): Promise<Steps[]> {
  const [atServer, atClient]: [Steps, Steps] = [{}, {}]
  const server = new Child(t, PROGRAM, ['serve', kind, path], mode)
  await server.receive()
  const { place } = await server.receive<Place>()
  await readStep(server, atServer)
  const client = new Child(t, PROGRAM, ['call', kind, String(place)], mode)
  await client.receive()
  await readStep(client, atClient)
  await goOn(server, atServer)
  await goOn(client, atClient)
  await goOn(server, atServer)
  await goOn(server, atServer)
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
    const plain = await inOneProcess(t, kind, join(folder, 'plain'), MODES.plain)
    t.ok(plain.listening?.includes(`${wrap}SERVERWRAP by a line`), 'the server is named, with its line')
    t.ok(plain.connected?.includes(`${wrap}WRAP by a line`), 'the socket is named, with its line')
    t.notOk(plain.closed?.includes(`${wrap}WRAP by a line`), 'and not once it is closed')
    t.strictSame(await inOneProcess(t, kind, join(folder, 'fast'), MODES.relinked), plain)
  })
  t.test(`${kind}, in two processes`, async t => {
    const folder = t.testdir({})
    const [plain, fast] = [
      await inTwoProcesses(t, kind, join(folder, 'plain'), MODES.plain),
      await inTwoProcesses(t, kind, join(folder, 'fast'), MODES.relinked),
    ]
    t.ok(plain[1]?.connected?.includes(`${wrap}WRAP by a line`), 'the socket is named, with its line')
    t.strictSame(fast, plain)
  })
}
