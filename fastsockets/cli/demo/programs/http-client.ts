/**
 * An HTTP client, `node:http` with a keep-alive agent: http-client.js <port> <request count> <file warm-ups>
 *
 * Makes that many small requests, one after the other, then fetches the file; prints what each took, after a warm-up: more
 * requests, and the file that many times.
 */
import { createHash } from 'node:crypto'
import http from 'node:http'
import { createHistogram } from 'node:perf_hooks'

export interface HttpResults {
  readonly roundTripP50Us: number
  readonly roundTripP99Us: number
  readonly fileSeconds: number
  readonly sha256: string
}

const [port, requestCount, fileWarmUps = 0] = process.argv.slice(2).map(Number)
/** Until V8 has compiled both programs. */
const WARM_UP_COUNT = 5000

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })

const histogram = createHistogram()
for (let i = -WARM_UP_COUNT; i < (requestCount ?? 0); i++) {
  const startedAt = process.hrtime.bigint()
  await get('/hello')
  if (i >= 0) histogram.record(process.hrtime.bigint() - startedAt)
}

for (let i = 0; i < fileWarmUps; i++) await get('/file')
const startedAt = performance.now()
const file = await get('/file')
const fileSeconds = (performance.now() - startedAt) / 1000
agent.destroy()

const results: HttpResults = {
  roundTripP50Us: histogram.percentile(50) / 1000,
  roundTripP99Us: histogram.percentile(99) / 1000,
  fileSeconds,
  sha256: createHash('sha256').update(file).digest('hex'),
}
console.log(JSON.stringify(results))

/** The whole body, in memory that is allocated once. */
function get(path: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const request = http.get({ agent, host: '127.0.0.1', port, path }, response => {
      if (response.statusCode !== 200) reject(new Error(`${path}: status ${response.statusCode}`))
      const body = Buffer.allocUnsafe(Number(response.headers['content-length']))
      let length = 0
      response.on('data', (chunk: Buffer) => {
        length += chunk.copy(body, length)
      })
      response.once('end', () => {
        if (length === body.length) resolve(body)
        else reject(new Error(`${path}: ${length} bytes of ${body.length}`))
      })
      response.once('error', reject)
    })
    request.once('error', reject)
  })
}
