/** More programs that want a core than there are cores: to spin then would make each message wait for all of them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { readStatusOf } from '../../fastsockets/status/read-status.ts'
import { Child, plainEnvironment } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { eventually } from '../support/until.ts'

const HOGS_PER_CORE = 2
/** Ends by itself, too, if this test is killed. */
const HOG = 'for (const endMs = Date.now() + 90_000; Date.now() < endMs; );'
const LOOK_MS = 500
/** Of the times that a message came, so many found the poller asleep. */
const ASLEEP_SHARE_MIN = 0.4
const LOOKS_IN_A_ROW = 4

t.test('two programs that talk sleep between messages while others want their cores', async t => {
  const server = new Child(t, program('ping-pong'), ['server'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('ping-pong'), ['client', String(port)], relinked())
  await client.receive()

  const hogs = Array.from({ length: HOGS_PER_CORE * availableParallelism() }, () =>
    spawn(process.execPath, ['-e', HOG], { stdio: 'ignore', env: plainEnvironment() }),
  )
  t.teardown(async () => {
    for (const hog of hogs) hog.kill('SIGKILL')
    await Promise.all(hogs.map(hog => hog.exitCode ?? hog.signalCode ?? once(hog, 'exit')))
  })
  let inARow = 0
  await eventually('both to sleep most of the time', async () => {
    const shares = await Promise.all([server.pid, client.pid].map(asleepShare))
    t.comment(`asleep: ${shares.map(share => share.toFixed(2)).join(', ')}`)
    inARow = shares.every(share => share > ASLEEP_SHARE_MIN) ? inARow + 1 : 0
    return inARow === LOOKS_IN_A_ROW
  })
  t.equal(inARow, LOOKS_IN_A_ROW)
})

async function asleepShare(pid: number): Promise<number> {
  const before = countsOf(pid)
  await sleep(LOOK_MS)
  const after = countsOf(pid)
  const messages = after.messages - before.messages
  return messages === 0 ? 0 : (after.doorbells - before.doorbells) / messages
}

function countsOf(pid: number): { messages: number; doorbells: number } {
  const { messages = 0, doorbells = 0 } = readStatusOf(pid)[0]?.poller ?? {}
  return { messages, doorbells }
}
