/** The machine's limit: two processes in C, compiled at run time if there is a compiler. */
import { type ExecFileException, execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
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
  whyNot: whyNoLimit,
  serve: limitProgram,
  dial,
}

/** Why this contestant cannot run here, in one line; found by compiling the program and a short run. */
export async function whyNoLimit(): Promise<string | undefined> {
  if (availableParallelism() < 2) return 'its two processes need a core each'
  try {
    await run(await limitProgram(), ['pingpong', '1'])
    return undefined
  } catch (error) {
    const { path, code, stderr } = error as ExecFileException
    if (path === 'cc' && code === 'ENOENT') return 'there is no C compiler (cc)'
    const detail = stderr?.trim().split('\n')[0] || (error as Error).message
    return `its program in C cannot be compiled, or cannot run: ${detail}`
  }
}

let program: Promise<string> | undefined

/** Compiled once for this process, which removes it when it exits. */
export function limitProgram(): Promise<string> {
  program ??= compile()
  return program
}

async function compile(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'fastsockets-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'limit')
  await run('cc', ['-O2', '-o', path, fileURLToPath(SOURCE)])
  return path
}

async function dial(path: string): Promise<Client> {
  const limit = async (...args: (string | number)[]): Promise<string> =>
    (await run(path, args.map(String), { maxBuffer: OUTPUT_MAX })).stdout
  return {
    pingPong: async (_size, ms, latencies) => {
      for (const line of (await limit('pingpong', ms)).trim().split('\n')) latencies.record(Number(line))
    },
    stream: async (size, ms) => {
      const [bytes = 0, ns = 0] = (await limit('stream', size, ms)).split(' ').map(Number)
      return { bytes, ms: ns / NS_PER_MS }
    },
    close: async () => {},
  }
}
