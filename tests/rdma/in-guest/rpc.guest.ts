/** RPC over RDMA: calls of all sizes, a stream with a slow reader, and the end of the serving endpoint. */
import t from 'tap'
import { openEndpoint } from '../../../am/index.ts'
import {
  bytesCodec,
  connectService,
  defineService,
  method,
  serve,
  stream,
  WINDOW_BYTES,
} from '../../../am/rpc/index.ts'
import { until } from '../../support/until.ts'

const ITEM_BYTES = 16 * 1024
const ITEMS = 200

const service = defineService({
  bytes: method<Uint8Array, Uint8Array>({ input: bytesCodec, output: bytesCodec }),
  echo: method<unknown, unknown>(),
  hang: method<void, void>(),
  flood: stream<number, Uint8Array>(),
})

t.test('a service over verbs', async t => {
  const [near, far] = [
    await openEndpoint({ drivers: ['verbs'] }),
    await openEndpoint({ drivers: ['verbs'] }),
  ] as const
  t.teardown(() => Promise.all([near.close(), far.close()]))
  let made = 0
  serve(far, service, {
    bytes: value => value,
    echo: value => value,
    hang: () => new Promise(() => {}),
    async *flood(items) {
      for (; made < items; made++) yield new Uint8Array(ITEM_BYTES)
    },
  })
  const client = await connectService(near, far.name, service)
  t.equal(near.stats().peers[0]?.driver, 'verbs')
  for (const size of [0, 64, 65_537, 1 << 20]) {
    const bytes = Buffer.alloc(size, 'x')
    t.equal(Buffer.compare(await client.bytes(bytes), bytes), 0, `${size} bytes`)
  }
  t.strictSame(await client.echo(new Map([[1, 2n]])), new Map([[1, 2n]]))

  const items = client.flood(ITEMS)
  await items.next()
  const bound = WINDOW_BYTES / ITEM_BYTES + 2
  let calls = 0
  await until('the handler to stop', () => {
    if (calls < 20) void client.echo(1).then(() => calls++)
    return calls >= 20
  })
  t.ok(made <= bound, `${made} items were made for a reader that has taken one; the bound is ${bound}`)
  let read = 1
  for await (const _ of items) read++
  t.equal(read, ITEMS)

  const lost = Array.from({ length: 20 }, () => client.hang().catch(error => error))
  await client.echo(1)
  await far.close()
  for (const error of await Promise.all(lost)) t.match(error, { code: 'ERR_RPC_UNAVAILABLE' })
})
