/**
 * A program on what looks like another host: it has a boot id of its own, and shares everything else. Two such programs
 * cannot use shared memory; the RDMA device is what is left.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { plainEnvironment } from '../support/child.ts'
import { REGISTER } from '../support/relinked.ts'
import { withWatchdog } from '../support/until.ts'

const BOOT_ID = '/proc/sys/kernel/random/boot_id'
/** Emulated processors start programs slowly. */
const START_MS_MAX = 60_000

export interface Program {
  readonly process: ChildProcess
  /** Lines of JSON that it prints, one after the other. */
  next<T>(): Promise<T>
  tell(line: string): void
}

/** Relinked; killed at the latest when the test ends. `preparation`: what the shell does before it becomes the program. */
export function startElsewhere(
  t: Test,
  file: URL,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
  preparation = 'exec',
): Program {
  const bootId = `/tmp/${randomUUID()}`
  writeFileSync(bootId, `${randomUUID()}\n`)
  const script = `mount --bind ${bootId} ${BOOT_ID} && ${preparation} "$0" "$@"`
  const command = [process.execPath, '--import', REGISTER.href, fileURLToPath(file), ...args]
  const child = spawn('unshare', ['--mount', 'sh', '-c', script, ...command], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...plainEnvironment(), ...env },
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  return {
    process: child,
    async next<T>() {
      const { value } = await withWatchdog('a line of the program', lines.next(), START_MS_MAX)
      return JSON.parse(value as string) as T
    },
    tell: line => void child.stdin.write(`${line}\n`),
  }
}
