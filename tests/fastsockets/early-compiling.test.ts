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
/** Seldom: a thread that sleeps most of the time. For longer than it takes to look whether V8 is eager. */
const SELDOM = { roundTrips: 400, pauseMs: 10 }
const LOOKS = 3
/** A part of the share for which V8 is eager. */
const RUNNABLE_SHARE_MAX = 0.1
const ATTEMPTS = 3

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

/** Whether V8 is eager while the program computes between its messages. */
async function isEagerWhileBusy({ child }: Program, { port }: Program): Promise<boolean> {
  return (await child.ask<{ isCompiled: boolean }>({ port, isBusy: true })).isCompiled
}

async function echo({ child }: Program, { port }: Program, roundTrips = 1): Promise<void> {
  await child.ask({ port, roundTrips })
}

t.test('while the program needs the core, on both sides', { skip }, async t => {
  const [server, client] = [await start(t), await start(t)]
  t.notOk(await isEager(server), 'a listener has heard from nobody')
  t.ok(await isEagerWhileBusy(client, server), 'an eager client')
  await eventually('a patient client', async () => !(await isEager(client)))
  t.ok(await isEagerWhileBusy(server, await start(t)), 'an eager server, which calls another peer')
  await eventually('a patient server', async () => !(await isEager(server)))
})

t.test('not where messages come seldom', { skip }, async t => {
  // On a crowded machine such a program waits for a core most of the time, and is right to be eager.
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const [server, client] = [await start(t), await start(t)]
    client.child.send({ port: server.port, ...SELDOM })
    let wasEager = false
    for (let looks = 0; looks < LOOKS; looks++) wasEager = await isEager(client)
    const { echoed, runnableShare } = await client.child.receive<{ echoed: number; runnableShare: number }>()
    t.equal(echoed, SELDOM.roundTrips)
    if (runnableShare < RUNNABLE_SHARE_MAX) return t.notOk(wasEager)
    t.comment(`the client needed a core for ${runnableShare} of the time`)
  }
  t.pass('V8 is patient', { skip: 'the machine is too crowded to say' })
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
