/** The limit in C: where it cannot be had it is left out by name, with the reason. */
import { spawnSync } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { checkReport } from '../../bench/read-report.ts'
import { plainEnvironment } from '../support/child.ts'

const BENCH = fileURLToPath(new URL('../../bench/main.js', import.meta.url))
const ARGS = ['pingpong', '--quick', '--rounds', '1', '--contestants', 'c-limit', '--json']

const TASKSET = spawnSync('sh', ['-c', 'command -v taskset'], { encoding: 'utf8' }).stdout.trim()

/** One of those on which this process may run. */
function ownCore(): string {
  const [, first = '0'] = /^Cpus_allowed_list:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return first
}

/** Runs the bench with this script, or none, in place of the compiler. */
function reasonWith(t: Test, compiler?: string, through: readonly string[] = []): string | undefined {
  const path = t.testdir({ bin: {}, tmp: {} })
  const cc = join(path, 'bin', 'cc')
  if (compiler !== undefined) {
    writeFileSync(cc, `#!/bin/sh\n${compiler}\n`)
    chmodSync(cc, 0o755)
  }
  const env = { ...plainEnvironment(), PATH: join(path, 'bin'), TMPDIR: join(path, 'tmp') }
  const [command = '', ...args] = [...through, process.execPath, BENCH, ...ARGS]
  const { status, stdout, stderr } = spawnSync(command, args, { env, encoding: 'utf8' })
  t.equal(status, 0, stderr)
  t.strictSame(readdirSync(join(path, 'tmp')), [], 'nothing is left behind')
  const { skipped } = checkReport(JSON.parse(stdout), 'standard output')
  const all = skipped.filter(({ contestant }) => contestant === 'c-limit')
  t.equal(all.length, 1)
  return all[0]?.reason
}

t.test('on one core', { skip: TASKSET === '' ? 'there is no taskset' : false }, async t => {
  t.equal(reasonWith(t, undefined, [TASKSET, '-c', ownCore()]), 'its two processes need a core each')
})

t.test('without a compiler', async t => {
  t.equal(reasonWith(t), 'there is no C compiler (cc)')
})

t.test('with a compiler that has no headers', async t => {
  const reason = reasonWith(t, 'echo "limit.c:1: fatal error: no such file: stdio.h" >&2; exit 1')
  t.match(reason, /cannot be compiled, or cannot run: .*no such file: stdio\.h/)
})

t.test('where programs may not run', async t => {
  t.match(reasonWith(t, ': > "$3"'), /cannot be compiled, or cannot run: .*EACCES/)
})
