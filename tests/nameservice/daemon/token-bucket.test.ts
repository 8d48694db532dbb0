/** How often one caller may ask. */
import t from 'tap'
import { TokenBuckets } from '../../../nameservice/daemon/token-bucket.ts'
import { askHttp, Named } from '../../support/named.ts'

const OWNERS_MAX = 10_000

t.test('who asks again and again is remembered, however many others ask', async t => {
  const buckets = new TokenBuckets(2)
  t.equal(buckets.acquire('greedy', 0), 0)
  t.equal(buckets.acquire('greedy', 0), 0)
  for (let i = 0; i < 3 * OWNERS_MAX; i++) {
    if (i % (OWNERS_MAX / 2) === 0) t.ok(buckets.acquire('greedy', 0) > 0, `after ${i} others`)
    t.equal(buckets.acquire(`other ${i}`, 0) > 0, false)
  }
})

t.test('who is quiet for longest is forgotten first', async t => {
  const buckets = new TokenBuckets(1)
  for (let i = 0; i <= OWNERS_MAX; i++) buckets.acquire(`${i}`, 0)
  t.ok(buckets.acquire('1', 0) > 0)
  t.equal(buckets.acquire('0', 0), 0, 'as good as new')
})

t.test('all addresses of this host together have the rate of one', async t => {
  const named = await Named.start(t, {
    args: ['--tcp-listen', '127.0.0.1:0', '--limits-requests-per-second', '50'],
  })
  const port = Number(named.messages().find(({ port }) => port !== undefined)?.port)
  const place = { host: '127.0.0.1', port, method: 'GET', path: '/v1/names', headers: {} }
  const replies = await Promise.all(
    Array.from({ length: 200 }, (_, i) => askHttp({ ...place, localAddress: `127.0.0.${i + 1}` })),
  )
  t.ok(replies.some(({ status }) => status === 429))
})
