/**
 * An FTP server, `ftp-srv` from npm, for anonymous users: ftp-server.js <root>
 *
 * Prints its port, and after each upload the digest of the received file. Ends when standard input ends.
 */
import type { AddressInfo, Server } from 'node:net'
import { FtpSrv } from 'ftp-srv'
import { sha256OfFile } from './digest.ts'

export interface FtpServerReady {
  readonly port: number
}

export interface Stored {
  readonly sha256: string
}

/** The server looks for free ports from here on; different in each process, so that two rarely try the same. */
const PASSIVE_PORT_MIN = 20_000 + (process.pid % 10_000)

const [root = '.'] = process.argv.slice(2)

/** In place of bunyan, which would print to standard output. */
const silence = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, child: () => silence }

const ftp = new FtpSrv({
  url: 'ftp://127.0.0.1:0',
  pasv_url: '127.0.0.1',
  pasv_min: PASSIVE_PORT_MIN,
  pasv_max: 65_535,
  anonymous: true,
  log: silence,
})
ftp.on('login', ({ connection }, resolve) => {
  connection.on('STOR', async (error: Error | null, path: string) => {
    if (error === null) say({ sha256: await sha256OfFile(path) })
  })
  resolve({ root })
})
await ftp.listen()
const { server } = ftp as unknown as { server: Server }
say({ port: (server.address() as AddressInfo).port })
process.stdin.resume().once('end', () => process.exit(0))

function say(message: FtpServerReady | Stored): void {
  console.log(JSON.stringify(message))
}
