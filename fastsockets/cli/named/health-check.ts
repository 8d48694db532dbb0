/** `fastsockets named --health-check`: asks the daemon that these settings describe whether it is well. */
import { type ClientRequest, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { request as tlsRequest } from 'node:https'
import type { loadDaemon, Settings } from '../../../nameservice/named.ts'
import { FAILURE, OK, USAGE_ERROR } from '../exit-codes.ts'

const TIMEOUT_MS = 3000
/** Where a daemon that listens on all addresses is called. */
const LOOPBACK_OF: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

export type Health = 'ready' | 'live'
type ParseListen = Awaited<ReturnType<typeof loadDaemon>>['parseListen']
type Ask = (path: string, listener: (response: IncomingMessage) => void) => ClientRequest

/** The exit code. Over the unix socket, or over TCP if there is none; neither takes a token, for health is open to all. */
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

/** How it is asked, or why it cannot be. */
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
  // The certificate is for the name by which clients call, hardly for this address, and who signed it is not known here.
  // Nothing is told to whoever answers, and nobody but this host can listen there.
  const anybody = { rejectUnauthorized: false }
  return askAt({ ...where, ...anybody }, tlsRequest)
}

function say(text: string): void {
  process.stderr.write(`fastsockets named: ${text}\n`)
}
