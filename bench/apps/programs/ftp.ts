/** ftp-srv and basic-ftp: a file in memory, up and down. */
import { writeFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { Client } from 'basic-ftp'
import { FtpSrv } from 'ftp-srv'
import { ftpFileSize } from './ftp-file.ts'
import { type Figure, HOST, play } from './program.ts'

const NAME = 'file.bin'
const CHUNK = Buffer.alloc(1 << 20, 'z')
/** The server looks for free ports from here on; different for each process, so that two seldom look at the same. */
const PASSIVE_PORT_MIN = 20_000 + (process.pid % 10_000)
/** In place of bunyan, which would print to standard output. */
const silence = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, child: () => silence }

async function serve(root: string): Promise<number> {
  writeFileSync(join(root, 'warm-up.bin'), CHUNK)
  const ftp = new FtpSrv({
    url: `ftp://${HOST}:0`,
    pasv_url: HOST,
    pasv_min: PASSIVE_PORT_MIN,
    pasv_max: 65_535,
    anonymous: true,
    log: silence,
  })
  ftp.on('login', (_login, resolve) => resolve({ root }))
  await ftp.listen()
  const { server } = ftp as unknown as { server: Server }
  return (server.address() as { port: number }).port
}

play({
  serve,
  async call(port, ms) {
    const chunkCount = Math.ceil(ftpFileSize(ms) / CHUNK.length)
    const bytes = chunkCount * CHUNK.length
    const client = new Client()
    await client.access({ host: HOST, port })
    await client.downloadTo(new Writable({ write: (_chunk, _encoding, done) => done() }), 'warm-up.bin')
    const up = await secondsOf(() => client.uploadFrom(Readable.from(Array(chunkCount).fill(CHUNK)), NAME))
    let received = 0
    const sink = new Writable({
      write(chunk: Buffer, _encoding, done) {
        received += chunk.length
        done()
      },
    })
    const down = await secondsOf(() => client.downloadTo(sink, NAME))
    client.close()
    if (received !== bytes) throw new Error(`${received} bytes of ${bytes} came back`)
    const figure = (part: string, seconds: number): Figure => {
      return { part, metric: 'rate', unit: 'B/s', value: bytes / seconds }
    }
    return [figure('upload', up), figure('download', down)]
  },
})

async function secondsOf(action: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await action()
  return (performance.now() - startMs) / 1000
}
