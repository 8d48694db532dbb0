/** While the first messages come V8 compiles sooner what runs often; before and afterwards it is as patient as ever. */
import t, { type Test } from 'tap'
import { Child, plainEnvironment } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { eventually } from '../support/until.ts'

const NATIVES = '--allow-natives-syntax'
/** Of so many messages there are more than enough to know what runs often. */
const MANY = 10_000

interface Answer {
  readonly isCompiled: boolean
}

/** A server, which knows only itself so far, and a client that has not connected yet. */
async function startPair(
  t: Test,
  execArgv: readonly string[],
  variables: NodeJS.ProcessEnv = {},
): Promise<readonly [Child, Child]> {
  const options = relinked({
    execArgv: [NATIVES, ...execArgv],
    env: { ...plainEnvironment(), ...variables },
  })
  const server = new Child(t, program('early-compiling'), [], options)
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('early-compiling'), [String(port)], options)
  await client.receive()
  return [server, client]
}

async function isEager(child: Child, roundTrips = 0): Promise<boolean> {
  return (await child.ask<Answer>({ roundTrips })).isCompiled
}

t.test('from the first message on, and as long as they come', async t => {
  const [server, client] = await startPair(t, [])
  t.notOk(await isEager(server), 'a listener has heard from nobody')
  t.notOk(await isEager(client), 'nor has a client')
  t.ok(await isEager(client, 1), 'a channel is open')
  await eventually('a patient client', async () => !(await isEager(client)))
  await eventually('a patient server', async () => !(await isEager(server)))
})

t.test('until there were enough of them', async t => {
  const [, client] = await startPair(t, [])
  t.ok(await isEager(client, 1))
  await isEager(client, MANY)
  await eventually('a patient client', async () => !(await isEager(client)))
  t.notOk(await isEager(client, MANY), 'and not again')
})

t.test('not where the program is told to keep the options of V8', async t => {
  const [, client] = await startPair(t, [], { FASTSOCKETS_V8_FLAGS: 'keep' })
  t.notOk(await isEager(client, 1))
})

t.test('nor where they were chosen on the command line', async t => {
  const chosen = process.versions.v8.startsWith('11.')
    ? ['--interrupt_budget=67584']
    : ['--invocation-count-for-turbofan=3000', '--minimum_invocations_after_ic_update=500']
  const [, client] = await startPair(t, chosen)
  t.notOk(await isEager(client, 1))
})
