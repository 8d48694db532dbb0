/**
 * node:tls, whose records native code makes and reads: small ones there and back, and a stream. A key that both sides know
 * does for certificates.
 */
import { once } from 'node:events'
import tls from 'node:tls'
import { HOST, Meter, measureRoundTrips, play, portOf } from './program.ts'

const SMALL = Buffer.alloc(64, 'x')
const LARGE = Buffer.alloc(64 * 1024, 'y')
const PSK = { psk: Buffer.alloc(32, 'k'), identity: 'bench' }
/** Keys that both sides know come without certificates up to TLS 1.2. */
const SHARED_KEY = { ciphers: 'PSK-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' } as const

function serve(): Promise<number> {
  const server = tls.createServer({ ...SHARED_KEY, pskCallback: () => PSK.psk }, socket => {
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('data', data => {
      if (data.length === SMALL.length) socket.write(data)
      else stream(socket)
    })
  })
  return portOf(server)
}

function stream(socket: tls.TLSSocket): void {
  const write = (): void => {
    while (socket.write(LARGE));
  }
  socket.on('drain', write)
  write()
}

async function open(port: number): Promise<tls.TLSSocket> {
  const socket = tls.connect({
    ...SHARED_KEY,
    host: HOST,
    port,
    pskCallback: () => PSK,
    checkServerIdentity: () => undefined,
  })
  await once(socket, 'secureConnect')
  socket.setNoDelay(true)
  return socket
}

play({
  serve,
  async call(port, ms) {
    const echo = await open(port)
    const roundTrips = await measureRoundTrips('echo 64 B', ms, () => {
      echo.write(SMALL)
      return once(echo, 'data')
    })
    echo.destroy()

    const meter = new Meter(ms)
    const socket = await open(port)
    socket.write('more')
    await new Promise<void>(resolve =>
      socket.on('data', (data: Buffer) => {
        if (meter.count(data.length)) resolve()
      }),
    )
    socket.destroy()
    return [roundTrips, { part: 'stream 64 KiB', metric: 'rate', unit: 'B/s', value: meter.perSecond }]
  },
})
