/**
 * Prints one line of JSON about a process that may pin only as many bytes as its argument says: it fills the cache with
 * unused memory, and then wants a connection for which that leaves no room.
 */
import { type Driver, drivers } from '../../../nic/index.ts'
import { BLOB_MAGIC, decodeAddress } from '../../../nic/verbs/address-layout.ts'
import { requireAdapter } from '../../../nic/verbs/open-adapter.ts'
import { Handler, sendFrame } from '../../support/frames.ts'
import { until } from '../../support/until.ts'

export interface PinnedReport {
  /** For an offer without a size. */
  readonly ringSize: number | undefined
  /** In the registration cache, before a connection was wanted and after. */
  readonly cached: number
  readonly cachedAfter: number
  /** Of the connection. */
  readonly ringBytes: number
  readonly arrived: string
  /** Of a connection that is too large by itself. */
  readonly refusal: string
}

const BUFFER_SIZE = 64 * 1024
const [limit] = process.argv.slice(2).map(Number) as [number]
const verbs = drivers.get('verbs') as Driver
const adapter = requireAdapter()

const own = verbs.offer()
own.accepted.catch(() => {})
const ringSize = decodeAddress(BLOB_MAGIC, own.blob)?.ringSize
own.cancel()
await until('the memory', () => adapter.slabBytes === 0)

const access = { remoteRead: true, remoteWrite: false }
for (let bytes = 0; bytes < limit; bytes += BUFFER_SIZE) {
  const registered = adapter.cache.acquire(new Uint8Array(BUFFER_SIZE), access)
  adapter.cache.release(registered)
}
const cached = adapter.cache.pinnedBytes

const offer = verbs.offer({ queueSize: limit / 8 })
const [near, far] = await Promise.all([verbs.connect(offer.blob), offer.accepted])
const ringBytes = adapter.slabBytes
const cachedAfter = adapter.cache.pinnedBytes
let arrived = ''
sendFrame(near, Buffer.from('hello'))
const sink = new Handler(bytes => {
  arrived = Buffer.from(bytes).toString()
})
await until('the frame', () => far.poll(sink, 1) === 1)

let refusal = ''
try {
  verbs.offer({ queueSize: limit })
} catch (error) {
  refusal = (error as Error).message
}
const report: PinnedReport = { ringSize, cached, cachedAfter, ringBytes, arrived, refusal }
console.log(JSON.stringify(report))
process.exit()
