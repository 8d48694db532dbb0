/** Whatever may be slower than plain TCP has a reason on the page. */
import t from 'tap'
import { reasonFor } from '../../bench/document/reasons.ts'
import { APP_NAMES } from '../../bench/suites/apps.ts'
import { SUITES } from '../../bench/suites.ts'

t.test('each suite that is compared with plain TCP, and each app', async t => {
  const compared = SUITES.filter(({ baseline, name }) => baseline === undefined && name !== 'apps')
  const cases = [
    ...compared.map(({ name }) => ({ suite: name, parameters: {} })),
    ...APP_NAMES.map(app => ({ suite: 'apps', parameters: { app, part: 'any' } })),
  ]
  t.ok(cases.length > 15)
  for (const { suite, parameters } of cases) {
    const [, why = ''] = reasonFor({ suite, contestant: 'net-relinked', parameters }) ?? []
    t.match(why, /^[A-Z].*\.$/, `${suite} ${JSON.stringify(parameters)}`)
  }
  for (const contestant of ['net-half-relinked', 'net-relinked-server'])
    t.match(reasonFor({ suite: 'plain-peers', contestant, parameters: {} }), [contestant, /Only one side/])
  t.equal(
    reasonFor({ suite: 'apps', contestant: 'net-relinked', parameters: { app: 'toString' } }),
    undefined,
  )
})
