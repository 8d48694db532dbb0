/** `fastsockets doctor` where there is a device: it is named, and both ways are tried. */
import t from 'tap'
import { doctor } from '../device-reports.ts'

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
