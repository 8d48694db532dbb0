/** `fastsockets named --health-check`: asks the daemon of these settings for its health. */
import { type ClientRequest, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { request as tlsRequest } from 'node:https'
import type { loadDaemon, Settings } from '../../../nameservice/named.ts'
import { FAILURE, OK, USAGE_ERROR } from '../exit-codes.ts'

const TIMEOUT_MS = 3000
/** The address to call if the daemon listens on all addresses. */
const LOOPBACK_OF: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

export type Health = 'ready' | 'live'
type ParseListen = Awaited<ReturnType<typeof loadDaemon>>['parseListen']
type Ask = (path: string, listener: (response: IncomingMessage) => void) => ClientRequest

/** The exit code. Over the unix socket, or over TCP if there is none; health needs no token. */
export async function checkHealth(
  settings: Settings,
  what: Health,
  parseListen: ParseListen,
): Promise<number> {
  const ask = waysOf(settings, parseListen)
  if (typeof ask === 'string') {
    say(ask)
    return USAGE_ERROR
  }
  return await new Promise(resolve => {
    const call = ask(what === 'ready' ? '/readyz' : '/healthz', response => {
      response.resume()
      if (response.statusCode === 200) return resolve(OK)
      say(`the daemon answers ${response.statusCode}: it is not ${what}`)
      resolve(FAILURE)
    })
    call.once('error', (error: NodeJS.ErrnoException) => {
      say(`no daemon answers there: ${error.code ?? error.message}`)
      resolve(FAILURE)
    })
    call.once('timeout', () => call.destroy(new Error('no answer')))
    call.end()
  })
}

/** The request options, or why the daemon cannot be asked. */
function waysOf({ socket, tcp }: Settings, parseListen: ParseListen): Ask | string {
  const askAt = (where: RequestOptions, ask: typeof request): Ask => {
    return (path, listener) => ask({ ...where, path, timeout: TIMEOUT_MS }, listener)
  }
  if (socket.path !== 'none') return askAt({ socketPath: socket.path }, request)
  const listen = parseListen(tcp.listen)
  if (listen === undefined) return 'there is nowhere to ask: socket.path is none, and tcp.listen is empty'
  if (listen.port === 0) return 'there is nowhere to ask: tcp.listen has port 0; give it one that is known'
  const where = { host: LOOPBACK_OF[listen.address] ?? listen.address, port: listen.port }
  if (tcp.certificate === '') return askAt(where, request)
  // The certificate is for the clients' name, hardly for this address, and its issuer is unknown here.
  // The request contains no secret, and only this host can listen there.
  const anyCertificate = { rejectUnauthorized: false }
  return askAt({ ...where, ...anyCertificate }, tlsRequest)
}

function say(text: string): void {
  process.stderr.write(`fastsockets named: ${text}\n`)
}
