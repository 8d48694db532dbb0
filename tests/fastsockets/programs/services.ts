/** An ordinary program that serves http and ftp, or calls both, and says over which wires. Driven by questions over IPC. */
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { Client } from 'basic-ftp'
import { FtpSrv } from 'ftp-srv'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

export type Question =
  | { readonly ask: 'serve'; readonly host: string }
  | { readonly ask: 'call'; readonly host: string; readonly http: number; readonly ftp: number }

export interface Served {
  readonly http: number
  readonly ftp: number
}

export interface Results {
  /** Bytes that came back as they were sent. */
  readonly posted: number
  readonly stored: number
  readonly wires: { readonly http: string; readonly control: string; readonly data: readonly string[] }
}

const PAYLOAD = Buffer.alloc(3_000_000, 'files and pages ')
const PASSIVE_PORT_MIN = 20_000 + (process.pid % 10_000)
/** In place of bunyan, which would print to standard output. */
const silence = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, child: () => silence }

process.on('message', (question: Question) => {
  const answer = question.ask === 'serve' ? serve(question.host) : call(question)
  answer.then(
    message => process.send?.(message),
    error => process.send?.({ error: { code: error.code, message: error.message } }),
  )
})
process.on('disconnect', () => process.exit())

async function serve(host: string): Promise<Served> {
  const web = http.createServer((request, response) => void request.pipe(response))
  await new Promise<void>(resolve => void web.listen(0, host, resolve))
  const folder = mkdtempSync(join(tmpdir(), 'services-'))
  process.on('exit', () => rmSync(folder, { recursive: true }))
  const ftp = new FtpSrv({
    url: `ftp://${host}:0`,
    pasv_url: host,
    pasv_min: PASSIVE_PORT_MIN,
    anonymous: true,
    log: silence,
  } as never)
  ftp.on('login', (_, resolve) => resolve({ root: folder }))
  await ftp.listen()
  const { server } = ftp as unknown as { server: http.Server }
  return { http: (web.address() as AddressInfo).port, ftp: (server.address() as AddressInfo).port }
}

async function call({ host, http: webPort, ftp: ftpPort }: Question & { ask: 'call' }): Promise<Results> {
  const { posted, wire } = await post(host, webPort)
  const client = new Client(0)
  const data: string[] = []
  await client.access({ host, port: ftpPort })
  const control = wireOf(client.ftp.socket)
  client.trackProgress(() => {
    const socket = client.ftp.dataSocket
    if (socket !== undefined) data.push(wireOf(socket))
  })
  await client.uploadFrom(Readable.from([PAYLOAD]), 'file')
  const into = new PassThrough()
  const [back] = await Promise.all([buffer(into), client.downloadTo(into, 'file')])
  client.close()
  const stored = back.equals(PAYLOAD) ? back.length : -1
  return { posted, stored, wires: { http: wire, control, data: [...new Set(data)] } }
}

async function post(host: string, port: number): Promise<{ posted: number; wire: string }> {
  const request = http.request({ host, port, method: 'POST' })
  const answered = new Promise<http.IncomingMessage>((resolve, reject) => {
    request.on('response', resolve)
    request.on('error', reject)
  })
  request.end(PAYLOAD)
  const response = await answered
  const wire = wireOf(response.socket)
  const back = await buffer(response)
  return { posted: back.equals(PAYLOAD) ? back.length : -1, wire }
}

function wireOf(socket: Socket): string {
  const { transport, reason } = transportOf(socket)
  return reason === undefined ? transport : `${transport}: ${reason.code} ${reason.text}`
}
