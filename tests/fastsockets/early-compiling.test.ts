/** While the first messages come V8 compiles sooner what runs often; before and afterwards it is as patient as ever. */
import t, { type Test } from 'tap'
import { Child, plainEnvironment } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { eventually } from '../support/until.ts'

/** Those of Node 20, 22, 24 and 26. */
const KNOWN = ['11.3', '12.4', '13.6', '14.6']
const [major, minor] = process.versions.v8.split('.')
const skip = KNOWN.includes(`${major}.${minor}`) ? false : `V8 ${major}.${minor} is left alone`
/** Of so many messages there are more than enough to know what runs often. */
const MANY = 10_000
/** Few, but for longer than it takes to look whether there are any: for 4 s, of which the first 2 are looked at. */
const STEADY = { roundTrips: 800, pauseMs: 5 }
const LOOKS = 4

interface Program {
  readonly child: Child
  readonly port: number
}

async function start(
  t: Test,
  execArgv: readonly string[] = [],
  variables: NodeJS.ProcessEnv = {},
): Promise<Program> {
  const child = new Child(
    t,
    program('early-compiling'),
    [],
    relinked({
      execArgv: ['--allow-natives-syntax', ...execArgv],
      env: { ...plainEnvironment(), ...variables },
    }),
  )
  return { child, ...(await child.receive<{ port: number }>()) }
}

async function isEager({ child }: Program): Promise<boolean> {
  return (await child.ask<{ isCompiled: boolean }>({})).isCompiled
}

async function echo({ child }: Program, { port }: Program, roundTrips = 1): Promise<void> {
  await child.ask({ port, roundTrips })
}

t.test('from the opening of a channel, on both sides', { skip }, async t => {
  const [server, client] = [await start(t), await start(t)]
  t.notOk(await isEager(server), 'a listener has heard from nobody')
  await echo(client, server)
  t.strictSame(await Promise.all([isEager(client), isEager(server)]), [true, true])
  await eventually('a patient client', async () => !(await isEager(client)))
  await eventually('a patient server', async () => !(await isEager(server)))
  const other = await start(t)
  await echo(client, other)
  t.ok(await isEager(client), 'another channel')
})

t.test('as long as messages come', { skip }, async t => {
  const [server, client] = [await start(t), await start(t)]
  client.child.send({ port: server.port, ...STEADY })
  const looks: boolean[] = []
  while (looks.length < LOOKS) looks.push(await isEager(client))
  t.strictSame(looks, Array(LOOKS).fill(true))
  t.strictSame(await client.child.receive(), { echoed: STEADY.roundTrips })
  await eventually('a patient client', async () => !(await isEager(client)))
})

t.test('until there were enough of them', { skip }, async t => {
  const [server, client] = [await start(t), await start(t)]
  await echo(client, server, MANY)
  await eventually('a patient client', async () => !(await isEager(client)))
  await echo(client, await start(t))
  t.notOk(await isEager(client), 'not for another channel either')
})

t.test('not where the program is told to keep the options of V8', async t => {
  const client = await start(t, [], { FASTSOCKETS_V8_FLAGS: 'keep' })
  await echo(client, await start(t))
  t.notOk(await isEager(client))
})

t.test('nor where they were chosen on the command line', { skip }, async t => {
  const chosen = major === '11' ? '--interrupt_budget=67584' : '--invocation-count-for-turbofan=3000'
  const client = await start(t, [chosen])
  await echo(client, await start(t))
  t.notOk(await isEager(client))
})
