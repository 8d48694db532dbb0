/** The two programs of `npm run bench:am`, between which it measures. */
import t from 'tap'
import { keyFileOf } from '../../bench/two-hosts.ts'
import { ChildProgram } from '../../fastsockets/cli/child-program.ts'
import { plainEnvironment } from '../support/child.ts'

const PEER = new URL('../../bench/programs/am-peer.js', import.meta.url)
const CALLER = new URL('../../bench/programs/am-caller.js', import.meta.url)
const TIMEOUT_MS = 60_000
const MESSAGES = 10

t.test('both programs end after the last long message, parts of which are still on their way', async t => {
  const env = { ...plainEnvironment(), FASTSOCKETS_KEY_FILE: keyFileOf(t) }
  const peer = ChildProgram.start('peer', PEER, ['manual', 'tcp'], env)
  t.teardown(() => peer.kill())
  const { name } = await peer.receive<{ name: string }>(TIMEOUT_MS)
  const caller = ChildProgram.start('caller', CALLER, ['long', name, String(MESSAGES), 'tcp'], env)
  t.teardown(() => caller.kill())
  const { bytesPerSecond } = await caller.receive<{ bytesPerSecond: number }>(TIMEOUT_MS)
  t.ok(bytesPerSecond > 0)
  await caller.stop(TIMEOUT_MS)
  await peer.stop(TIMEOUT_MS)
})
