/** The proof: two relinked programs are started and exchange messages. */
import { START_VARIABLE } from '../../policy/start-variable.ts'
import { ChildProgram } from '../child-program.ts'
import { relinkedNodeOptions } from '../relink.ts'
import type { Check } from './check.ts'
import type { EchoReport } from './programs/echo-client.ts'
import type { EchoServerReady } from './programs/echo-server.ts'

const SERVER = new URL('./programs/echo-server.js', import.meta.url)
const CLIENT = new URL('./programs/echo-client.js', import.meta.url)
/** Generous, for emulated or overloaded machines, where a relinked program takes seconds to start. */
const TIMEOUT_MS = 30_000

export async function liveCheck(): Promise<Check> {
  const name = 'live test'
  try {
    const { wire, reason, roundTripUs } = await echo()
    const detail = `two relinked programs talk over ${wire}, round trip ${roundTripUs.toFixed(1)} us (p50)`
    if (wire === 'shm') return { name, state: 'ok', detail }
    return { name, state: 'failed', detail, hint: `because ${reason ?? 'of a reason that is not on record'}` }
  } catch (error) {
    const hint = 'run it again with DEBUG=fastsockets:* to see what happens'
    return { name, state: 'failed', detail: (error as Error).message, hint }
  }
}

async function echo(): Promise<EchoReport> {
  const options = { NODE_OPTIONS: relinkedNodeOptions(process.env.NODE_OPTIONS), [START_VARIABLE]: 'fast' }
  const env = { ...process.env, ...options }
  const server = ChildProgram.start('the echo server', SERVER, [], env)
  try {
    const { port } = await server.receive<EchoServerReady>(TIMEOUT_MS)
    const client = ChildProgram.start('the echo client', CLIENT, [String(port)], env)
    const report = await client.receive<EchoReport>(TIMEOUT_MS)
    await client.stop()
    await server.stop()
    return report
  } finally {
    server.kill()
  }
}
