/** Halves of the bench end with the process that started them, also those that poll and never read the end of standard input. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { whyNoRoom } from '../../bench/apps/app-folder.ts'
import { ftpFileSize } from '../../bench/apps/programs/ftp-file.ts'
import { contestant as cLimit } from '../../bench/contestants/c-limit.ts'
import { Child, plainEnvironment } from '../support/child.ts'
import { eventually } from '../support/until.ts'

const MEASURING = new URL('./measuring.js', import.meta.url)

for (const name of ['nic-shm', 'am-polling', 'raw-polling']) {
  t.test(name, async t => {
    const measuring = new Child(t, MEASURING, [name])
    const halves = await measuring.receive<number[]>()
    t.teardown(() => {
      for (const pid of halves.filter(isThere)) process.kill(pid, 'SIGKILL')
    })
    t.equal(halves.filter(isThere).length, 2)
    measuring.process.kill('SIGKILL')
    await eventually('the end of both halves', () => !halves.some(isThere))
    t.strictSame(halves.filter(isThere), [])
  })
}

const reason = await cLimit.whyNot?.()
t.test('the two processes of the limit in C', { skip: reason ?? false }, async t => {
  const env = { ...plainEnvironment(), TMPDIR: t.testdir() }
  const measuring = new Child(t, MEASURING, ['c-limit'], { env })
  const [half = 0] = await measuring.receive<number[]>()
  const all = await eventually('both', () => {
    const [limit] = childrenOf(half)
    const partner = limit === undefined ? [] : childrenOf(limit)
    return partner.length === 1 && [half, limit as number, ...partner]
  })
  t.teardown(() => {
    for (const pid of all.filter(isThere)) process.kill(pid, 'SIGKILL')
  })
  measuring.process.kill('SIGKILL')
  await eventually('the end of all three', () => !all.some(isThere))
  t.strictSame(all.filter(isThere), [])
})

const noRoom = whyNoRoom(ftpFileSize(2000))
const INTERRUPTED: readonly [what: string, program: string, args: readonly string[], skip?: string][] = [
  ['sockets', 'main', ['connect', '--contestants', 'net-tcp', '--rounds', '1']],
  ['a file that an app sends', 'main', ['apps', '--contestants', 'net-tcp', '--rounds', '1'], noRoom ?? ''],
  ['active messages', 'active-messages', []],
]
for (const [what, program, args, skip = ''] of INTERRUPTED) {
  const name = `${what}: a run that is interrupted takes its programs with it, and leaves nothing behind`
  t.test(name, { skip: skip || false }, async t => {
    const folder = t.testdir()
    const path = fileURLToPath(new URL(`../../bench/${program}.js`, import.meta.url))
    const bench = spawn(process.execPath, [path, ...args], {
      env: { ...plainEnvironment(), TMPDIR: folder },
      stdio: 'ignore',
    })
    const pid = bench.pid as number
    t.teardown(() => void bench.kill('SIGKILL'))
    const programs = await eventually('both programs', () => {
      const pids = childrenOf(pid)
      return pids.length === 2 && pids
    })
    if (args[0] === 'apps') await eventually('the file', () => filesInMemory(pid).includes('file.bin'))
    const ended = once(bench, 'exit')
    bench.kill('SIGINT')
    t.strictSame(await ended, [130, null])
    await eventually('the end of both programs', () => !programs.some(isThere))
    t.strictSame(readdirSync(folder), [])
    t.strictSame(filesInMemory(pid), [])
  })
}

/** In the folders that this process has made for its programs. */
function filesInMemory(pid: number): string[] {
  const own = readdirSync('/dev/shm').filter(name => name.startsWith(`fastsockets-bench-${pid}-`))
  return own.flatMap(name => [name, ...readdirSync(`/dev/shm/${name}`)])
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.trim().split(' ').filter(Boolean).map(Number)
}

/** An ended process may still wait for its new parent to collect it. */
function isThere(pid: number): boolean {
  try {
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
