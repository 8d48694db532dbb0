/** What the machine can do: two processes in C, compiled on the spot where there is a compiler. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Client, Contestant } from './contestant.ts'

const run = promisify(execFile)
/** The source lies beside `dist/`. */
const SOURCE = new URL('../../../bench/programs/limit.c', import.meta.url)
const CACHE_LINE = 64
const NS_PER_MS = 1e6
const OUTPUT_MAX = 100 * 1024 * 1024

export const contestant: Contestant = {
  name: 'c-limit',
  what: 'two processes in C: one cache line to and fro, and a copy into a ring and a copy out of it',
  abilities: ['pingPong', 'stream'],
  polls: true,
  relinked: [],
  partner: 'own',
  tellsMeans: true,
  sizeMax: CACHE_LINE,
  whyNot: async () => {
    try {
      await run('cc', ['--version'])
      return undefined
    } catch {
      return 'there is no C compiler (cc)'
    }
  },
  serve: async () => '',
  dial,
}

async function dial(): Promise<Client> {
  const folder = await mkdtemp(join(tmpdir(), 'fastsockets-bench-'))
  const program = join(folder, 'limit')
  await compileLimit(program)
  const limit = async (...args: (string | number)[]): Promise<string> =>
    (await run(program, args.map(String), { maxBuffer: OUTPUT_MAX })).stdout
  return {
    pingPong: async (_size, ms, latencies) => {
      for (const line of (await limit('pingpong', ms)).trim().split('\n')) latencies.record(Number(line))
    },
    stream: async (size, ms) => {
      const [bytes = 0, ns = 0] = (await limit('stream', size, ms)).split(' ').map(Number)
      return { bytes, ms: ns / NS_PER_MS }
    },
    close: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Rejects where there is no compiler. */
export async function compileLimit(program: string): Promise<void> {
  await run('cc', ['-O2', '-o', program, fileURLToPath(SOURCE)])
}
