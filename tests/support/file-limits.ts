import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Why another process's limits cannot be changed here, or false. */
export function noPrlimit(): string | false {
  return spawnSync('prlimit', ['--version']).status === 0 ? false : 'there is no prlimit'
}

/** Those that every process begins with. */
const FILES_MIN = '3'

/** While `act` runs, that process may open nothing more, not even in place of what it closes. */
export async function withoutFiles(pid: number, act: () => Promise<void>): Promise<void> {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8')) ?? []
  setLimit(pid, FILES_MIN)
  try {
    await act()
  } finally {
    setLimit(pid, soft as string)
  }
}

function setLimit(pid: number, soft: string): void {
  const { status, stderr } = spawnSync('prlimit', ['--pid', String(pid), `--nofile=${soft}:`])
  if (status !== 0) throw new Error(`prlimit: ${stderr}`)
}
