/** Records come from strangers, over the wire and out of etcd: programs connect to their ports and show their tags. */
import t from 'tap'
import { isRecord } from '../../nameservice/record.ts'

const GOOD = {
  kind: 'inet',
  endpoint: 'e',
  host: '',
  pid: 1,
  uid: 0,
  drivers: [],
  tag: '0000000000000000',
  version: 1,
  port: 65_535,
  labels: {},
}

t.test('what is a record, and what is none', async t => {
  t.equal(isRecord(GOOD), true)
  const { port: _, ...portless } = GOOD
  t.equal(isRecord(portless), true)
  for (const port of [0, -1, 65_536, 1.5, '80', null])
    t.equal(isRecord({ ...GOOD, port }), false, `port ${port}`)
  for (const tag of ['', '0', 'g'.repeat(16), '0'.repeat(17), 0, null])
    t.equal(isRecord({ ...GOOD, tag }), false, `tag ${tag}`)
})
