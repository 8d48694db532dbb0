/** `fastsockets doctor` where there is a device: it is named, and both ways are tried. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { plainEnvironment } from '../../support/child.ts'

const CLI = fileURLToPath(new URL('../../../fastsockets/cli/main.js', import.meta.url))

interface Report {
  readonly isFast: boolean
  readonly checks: readonly { name: string; state: string; detail: string; hint?: string }[]
}

function doctor(): Promise<{ code: number; report: Report }> {
  const options = { env: plainEnvironment() }
  return new Promise(resolve => {
    const child = execFile(process.execPath, [CLI, 'doctor', '--json'], options, (_error, stdout) => {
      resolve({ code: child.exitCode as number, report: JSON.parse(stdout) as Report })
    })
  })
}

await t.test('doctor names the device, and talks over it and over shared memory', async t => {
  const { code, report } = await doctor()
  const check = (name: string): unknown => report.checks.find(check => check.name === name)
  t.match(check('driver verbs'), {
    state: 'ok',
    detail: /^between hosts: rxe0 port 1, GID \d+ \(\w{32}\), MTU \d+/,
  })
  t.match(check('live test'), { state: 'ok', detail: /talk over shm, round trip [\d.]+ us/ })
  t.match(check('live test verbs'), {
    state: 'ok',
    detail: /^frames leave by rxe0 port 1, .* and come back, round trip [\d.]+ us/,
  })
  t.equal(report.isFast, true)
  t.equal(code, 0)
})
