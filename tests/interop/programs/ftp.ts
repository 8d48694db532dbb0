/** basic-ftp with ftp-srv: transfers both ways, listings, errors, in the clear and over TLS that begins in mid-stream. */
import { mkdtempSync, rmSync } from 'node:fs'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { Client, type FileInfo } from 'basic-ftp'
import { FtpSrv } from 'ftp-srv'
import { HOST } from '../../support/placement.ts'
import { certificate, trust } from '../certificate.ts'
import { bytesOf, digest, failureOf, type Journal, largeBytes } from '../journal.ts'
import { deadPort, type Place, placeOf, play, type Service } from '../scenario.ts'

/** In place of bunyan, which would print to standard output. */
const silence = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, child: () => silence }
/** The server looks for free ports from here on; different for each process, so that two seldom look at the same. */
const PASSIVE_PORT_MIN = 20_000 + (process.pid % 10_000)

async function serve(journal: Journal): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), 'interop-ftp-'))
  const ftp = new FtpSrv({
    url: `ftp://${HOST}:0`,
    pasv_url: HOST,
    pasv_min: PASSIVE_PORT_MIN,
    pasv_max: 65_535,
    anonymous: true,
    log: silence,
    tls: certificate(),
  } as never)
  ftp.on('login', ({ connection }, resolve) => {
    journal.note('server', 'login')
    for (const event of ['STOR', 'RETR', 'RNTO'] as const)
      connection.on(event as 'STOR', (error: Error | null) => journal.note('server', event, error?.message))
    resolve({ root: folder })
  })
  await ftp.listen()
  const { server } = ftp as unknown as { server: Server }
  return {
    place: { ...(await placeOf(server)), dead: await deadPort() },
    close: async () => {
      await ftp.close()
      rmSync(folder, { recursive: true })
    },
  }
}

async function call({ port, dead }: Place, journal: Journal): Promise<void> {
  const place = { host: HOST, port }
  for (const secure of [false, true]) {
    const name = secure ? 'secure' : 'clear'
    const { client, code } = await access(secure)
    client.trackProgress(info => info.bytesOverall === 0 && journal.note(name, info.type))
    journal.note(name, code)
    const upload = await client.uploadFrom(Readable.from([largeBytes()]), 'large')
    journal.note(name, upload.code, await client.size('large'))
    journal.note(name, await download('large'))
    journal.note(name, 'rest', await download('large', 10_000_000))
    for (let i = 0; i < 5; i++)
      await client.uploadFrom(Readable.from([bytesOf(1000 * i, `${i}`)]), `small ${i}`)
    await client.appendFrom(Readable.from([bytesOf(500, 'more')]), 'small 1')
    journal.note(name, await download('small 1'))
    await client.rename('small 2', 'renamed')
    await client.ensureDir('folder')
    await client.cdup()
    const list = await client.list()
    journal.note(name, list.map((file: FileInfo) => `${file.name}=${file.size * Number(file.isFile)}`).sort())
    journal.note(name, await failureOf(client.remove('nothing')))
    journal.note(name, await failureOf(client.downloadTo(new PassThrough(), 'nothing')))
    await client.clearWorkingDir()
    journal.note(name, (await client.list()).length)
    client.close()

    async function download(file: string, from = 0): Promise<string> {
      const target = new PassThrough()
      const [bytes] = await Promise.all([buffer(target), client.downloadTo(target, file, from)])
      return digest(bytes)
    }
  }
  /** ftp-srv announces TLS before it is ready for it: a fast client must try again. */
  async function access(secure: boolean): Promise<{ client: Client; code: number }> {
    for (;;) {
      const client = new Client()
      try {
        const options = { ...place, secure, ...(secure && { secureOptions: trust() }) }
        return { client, code: (await client.access(options)).code }
      } catch (error) {
        client.close()
        if (!secure || (error as NodeJS.ErrnoException).code !== 'ERR_SSL_WRONG_VERSION_NUMBER') throw error
      }
    }
  }

  const nobody = new Client()
  journal.note('refused', await failureOf(nobody.access({ ...place, port: dead as number })))
  nobody.close()
}

play({ serve, call })
