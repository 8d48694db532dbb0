/** Reads the body of a request as JSON, within limits of size and time. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { type Clock, realClock } from '../../nic/clock.ts'
import { Refusal } from '../problem.ts'
import { JSON_TYPE } from './operation.ts'

export interface BodyLimits {
  readonly bodyBytes: number
  readonly requestMs: number
}

/** Resolves to undefined without a body. */
export async function readJson(
  request: IncomingMessage,
  { bodyBytes, requestMs }: BodyLimits,
  clock = realClock,
): Promise<unknown> {
  const length = request.headers['content-length']
  if (length === '0' || (length === undefined && request.headers['transfer-encoding'] === undefined))
    return undefined
  if (Number(length ?? 0) > bodyBytes) throw tooLarge(bodyBytes)
  if (!isJson(request.headers['content-type'])) {
    throw new Refusal('bad-media-type', `The request body must be ${JSON_TYPE}.`)
  }
  const bytes = await readBytes(request, bodyBytes, requestMs, clock)
  if (!isUtf8(bytes)) throw malformed('is not UTF-8')
  try {
    return JSON.parse(bytes.toString())
  } catch {
    throw malformed('is not JSON')
  }
}

/** Reads by events: that does not destroy a refused request, so it can still be answered. */
function readBytes(request: IncomingMessage, bytesMax: number, msMax: number, clock: Clock): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const settle = (refusal?: Refusal): void => {
      clock.clearTimeout(timer)
      request.off('data', handleData).off('end', handleEnd).off('close', handleClose)
      if (refusal === undefined) resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))
      else reject(refusal)
    }
    const handleData = (chunk: Buffer): void => {
      size += chunk.length
      if (size > bytesMax) settle(tooLarge(bytesMax))
      else chunks.push(chunk)
    }
    const handleEnd = (): void => settle()
    const handleClose = (): void => settle(malformed('ends too early'))
    const timer = clock.setTimeout(() => settle(tooSlow()), msMax)
    request.on('data', handleData).once('end', handleEnd).once('close', handleClose)
  })
}

function isJson(contentType: string | undefined): boolean {
  if (contentType === JSON_TYPE) return true
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === JSON_TYPE
}

function tooLarge(bytesMax: number): Refusal {
  return new Refusal('too-large', `A request body may have ${bytesMax} bytes.`)
}

function tooSlow(): Refusal {
  return new Refusal('request-timeout', 'The request body took too long to arrive.')
}

function malformed(detail: string): Refusal {
  return new Refusal('malformed', `The request body ${detail}.`, { errors: [{ at: '', detail }] })
}
