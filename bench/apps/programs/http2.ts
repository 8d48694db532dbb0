/** node:http2 in the clear, whose frames native code makes and reads: many small answers at a time, and large ones. */
import { once } from 'node:events'
import http2, { type ClientHttp2Session } from 'node:http2'
import { HOST, Meter, play, portOf } from './program.ts'

const SMALL = Buffer.alloc(64, 'x')
const LARGE = Buffer.alloc(64 * 1024, 'y')
const LARGE_COUNT = 256
const AT_ONCE = 32
/** The receive window of the client: large, for large answers. */
const WINDOW = 1 << 20
const SESSION_WINDOW = 4 << 20

function serve(): Promise<number> {
  const server = http2.createServer()
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    stream.respond()
    if (headers[':path'] !== '/large') return stream.end(SMALL)
    let left = LARGE_COUNT
    const write = (): void => {
      while (left > 0) {
        left--
        if (!stream.write(LARGE)) return
      }
      stream.end()
    }
    stream.on('drain', write)
    write()
  })
  return portOf(server)
}

async function open(port: number): Promise<ClientHttp2Session> {
  const session = http2.connect(`http://${HOST}:${port}`, { settings: { initialWindowSize: WINDOW } })
  await once(session, 'connect')
  session.setLocalWindowSize(SESSION_WINDOW)
  session.on('error', () => {})
  return session
}

/** Answers, or their bytes, per second, `atOnce` under way. */
async function measure(
  port: number,
  ms: number,
  path: string,
  atOnce: number,
  countsBytes: boolean,
): Promise<number> {
  const session = await open(port)
  const meter = new Meter(ms)
  await new Promise<void>(resolve => {
    const ask = (): void => {
      const request = session.request({ ':path': path })
      request.on('error', () => {})
      request.on('data', (data: Buffer) => {
        if (countsBytes && meter.count(data.length)) resolve()
      })
      request.on('end', () => {
        if (!countsBytes && meter.count(1)) resolve()
        if (!session.destroyed) ask()
      })
    }
    for (let i = 0; i < atOnce; i++) ask()
  })
  // Not in the 'data' callback: nghttp2 would use the stream after it is freed, which also crashes plain Node.
  await new Promise(setImmediate)
  session.destroy()
  return meter.perSecond
}

play({
  serve,
  call: async (port, ms) => [
    {
      part: `requests, ${AT_ONCE} at once`,
      metric: 'rate',
      unit: '1/s',
      value: await measure(port, ms, '/small', AT_ONCE, false),
    },
    { part: 'download', metric: 'rate', unit: 'B/s', value: await measure(port, ms, '/large', 1, true) },
  ],
})
