/** Problem documents for those who have not got as far as a request: written to the socket by hand. */
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { PROBLEM_MEDIA_TYPE, Refusal } from '../problem.ts'

/** What Node's parser says, and what becomes of it. */
const PARSER_REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: new Refusal('headers-too-large', 'The request line and the headers are too long.'),
  ERR_HTTP_REQUEST_TIMEOUT: new Refusal('request-timeout', 'The request took too long to arrive.'),
}
const MALFORMED = new Refusal('malformed', 'This is not HTTP/1.1.')

/** Connections that were refused, and the time for which each is kept until its peer has read why. */
const LINGERING_MAX = 64
const LINGER_MS = 200
let lingering = 0

export const NO_PROXY = new Refusal('malformed', 'This is no proxy.')
export const TOO_MANY_CONNECTIONS = new Refusal(
  'limit-connections',
  'There are as many connections as there may be, of this owner or in all, and all of them are busy.',
)

/** What to answer to what the parser could not take; undefined if nobody is there to hear it. */
export function refusalOf(error: NodeJS.ErrnoException): Refusal | undefined {
  const { code = '' } = error
  if (code === 'ECONNRESET' || code === 'EPIPE') return undefined
  return PARSER_REFUSALS[code] ?? MALFORMED
}

/**
 * Answers and hangs up. What the peer says meanwhile is dropped: unread, it would reset the connection, and the answer would be
 * lost with it. So the connection lives for a moment longer, if there are not many of them.
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
