/** One run of one app in one mode: starts and ends the processes, and proves which wire they used. */
import { ChildProgram } from '../../fastsockets/cli/child-program.ts'
import { environmentOf, type RunMode, WIRE_OF_MODE } from '../../fastsockets/cli/demo/run-mode.ts'
import { assertWire, readSightings, type Sighting } from '../../fastsockets/cli/demo/witness-report.ts'
import { measuredEnvironment } from '../measured-environment.ts'
import { withFolder } from './app-folder.ts'
import { WORKER_COUNT } from './programs/matrix.ts'
import type { Figure } from './programs/program.ts'

const START_TIMEOUT_MS = 30_000
/** Besides the time that was asked for. */
const RUN_TIMEOUT_MS = 60_000

/** An overloaded machine may delay a greeting: a longer wait keeps the run from falling back to TCP. */
const PATIENCE = { FASTSOCKETS_GREETING_TIMEOUT_MS: '10000' }

/** A server and its client, unmodified packages both. */
export async function runPair(app: string, mode: RunMode, ms: number): Promise<readonly Figure[]> {
  return await withFolder('memory', folder =>
    witnessed(`${app}, ${mode},`, mode, async env => {
      const script = programOf(app)
      const server = ChildProgram.start(`${app} server (${mode})`, script, ['server', folder], env)
      const programs = [server]
      try {
        const { port } = await server.receive<{ port: number }>(START_TIMEOUT_MS)
        const args = ['client', String(port), String(ms)]
        const client = ChildProgram.start(`${app} client (${mode})`, script, args, env)
        programs.push(client)
        // Each of its parts may take as long.
        const figures = await client.receive<Figure[]>(10 * ms + RUN_TIMEOUT_MS)
        await client.stop()
        await server.stop()
        return figures
      } finally {
        for (const program of programs) program.kill()
      }
    }),
  )
}

/**
 * A coordinator and its workers. No witness sees raw sockets, so programs with raw sockets check their wire
 * themselves.
 */
export async function runMatrix(kind: 'net' | 'raw', mode: RunMode, n: number): Promise<readonly Figure[]> {
  const run = async (env: NodeJS.ProcessEnv): Promise<readonly Figure[]> => {
    const script = programOf(`matrix-${kind}`)
    const coordinator = ChildProgram.start('the coordinator', script, ['coordinator', String(n)], env)
    const workers: ChildProgram[] = []
    try {
      const { port } = await coordinator.receive<{ port: number }>(START_TIMEOUT_MS)
      const args = ['worker', String(n), String(port)]
      for (let i = 0; i < WORKER_COUNT; i++)
        workers.push(ChildProgram.start(`worker ${i}`, script, args, env))
      const figures = await coordinator.receive<Figure[]>(RUN_TIMEOUT_MS)
      for (const worker of workers) await worker.receive(RUN_TIMEOUT_MS)
      for (const program of [...workers, coordinator]) await program.stop()
      return figures
    } finally {
      for (const program of [...workers, coordinator]) program.kill()
    }
  }
  if (kind === 'net') return await witnessed(`matrix, ${mode},`, mode, run)
  return await run({ ...measuredEnvironment(false), ...PATIENCE })
}

/** Throws unless every socket of these processes was on the wire of `mode`. */
async function witnessed<T>(
  name: string,
  mode: RunMode,
  run: (env: NodeJS.ProcessEnv) => Promise<T>,
): Promise<T> {
  return await withFolder('disk', async folder => {
    const result = await run({ ...environmentOf(mode, folder, measuredEnvironment(false)), ...PATIENCE })
    assertWire(name, readSightings(folder).filter(wasConnected), WIRE_OF_MODE[mode], 1)
    return result
  })
}

/** Data written to a socket that the client destroyed before it was connected used no wire. */
function wasConnected({ transport }: Sighting): boolean {
  return transport !== 'none'
}

function programOf(name: string): URL {
  return new URL(`./programs/${name}.js`, import.meta.url)
}
