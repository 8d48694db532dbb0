/** Problem documents for callers without a complete request: written to the socket by hand. */
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { PROBLEM_MEDIA_TYPE, Refusal } from '../problem.ts'

/** Refusals by the error code of Node's parser. */
const PARSER_REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: new Refusal('headers-too-large', 'The request line and the headers are too long.'),
  ERR_HTTP_REQUEST_TIMEOUT: new Refusal('request-timeout', 'The request took too long to arrive.'),
}
const MALFORMED = new Refusal('malformed', 'This is not HTTP/1.1.')

/** Most refused connections that stay open, and the time for which each does, so that its peer can read the answer. */
const LINGERING_MAX = 64
const LINGER_MS = 200
let lingering = 0

export const NO_PROXY = new Refusal('malformed', 'This is no proxy.')
export const TOO_MANY_CONNECTIONS = new Refusal(
  'limit-connections',
  'There are as many connections as there may be, of this owner or in all, and all of them are busy.',
)

/** The answer to a parser error; undefined if the peer has gone. */
export function refusalOf(error: NodeJS.ErrnoException): Refusal | undefined {
  const { code = '' } = error
  if (code === 'ECONNRESET' || code === 'EPIPE') return undefined
  return PARSER_REFUSALS[code] ?? MALFORMED
}

/**
 * Answers and closes. Bytes from the peer are read and dropped: unread bytes would make the kernel reset the
 * connection, and the peer would lose the answer. So the connection stays open for `LINGER_MS`, if there are not
 * too many of them.
 */
export function endWithProblem(socket: Duplex, refusal: Refusal): void {
  const body = JSON.stringify(refusal.document)
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    `content-type: ${PROBLEM_MEDIA_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  const text = `${head.join('\r\n')}\r\n\r\n${body}`
  if (lingering >= LINGERING_MAX) return void socket.end(text, () => socket.destroy())
  lingering += 1
  socket.end(text)
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('end', () => socket.destroy())
  socket.once('close', () => {
    clearTimeout(timer)
    lingering -= 1
  })
}
