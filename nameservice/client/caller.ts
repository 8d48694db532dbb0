/** One question, one answer: over a unix socket in a pipeline, over TCP by `node:http`. */
import type { ClientRequest, IncomingMessage } from 'node:http'
import { type Clock, startInBackground, type Timer } from '../../nic/clock.ts'
import { PROBLEM_URN } from '../problem.ts'
import { parseJson, readProblem } from './answers.ts'
import { EndedError, NameError, unavailable } from './errors.ts'
import { Pauses } from './pauses.ts'
import { ANSWER_SIZE_MAX, type Reply } from './reply-reader.ts'
import type { Target } from './target.ts'

export const TIMEOUT_MS_DEFAULT = 2000
/**
 * Characters of a question that may share a connection. The daemon may close a connection with a longer one, and all
 * questions on it.
 */
const PIPELINED_SIZE_MAX = 8 * 1024
const TOO_MANY: string = `${PROBLEM_URN}rate`

export interface Question {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly body?: unknown
  readonly timeoutMs?: number
  /** The program may end before the answer comes. */
  readonly isBackground?: boolean
}

export class Caller {
  readonly #target: Target
  readonly #clock: Clock
  readonly #pauses: Pauses

  constructor(target: Target) {
    this.#target = target
    this.#clock = target.time.clock
    this.#pauses = new Pauses(this.#clock)
  }

  /**
   * Rejects with `ERR_NAMES_REFUSED` on any status above 299 other than the `expected` ones. A question that is refused
   * for asking too often is repeated when the daemon says, within its time: a refused question was not performed, so
   * nothing is done twice.
   */
  async ask(question: Question, expected: readonly number[] = []): Promise<Reply> {
    const { timeoutMs = TIMEOUT_MS_DEFAULT, isBackground = false } = question
    const untilMs = this.#clock.now() + timeoutMs
    let now = question
    for (let refusals = 1; ; refusals++) {
      const reply = await this.#askTwice(now)
      if (reply.status < 300 || expected.includes(reply.status)) return reply
      const problem = readProblem(parseJson(reply.text))
      const advisedMs = problem.type === TOO_MANY ? problem.retryAfterMs : undefined
      const leftMs = untilMs - this.#clock.now()
      if (advisedMs === undefined || advisedMs >= leftMs)
        throw new NameError('ERR_NAMES_REFUSED', problem.detail, { problem })
      // Each pause is longer than the daemon's: many clients wait for the same permit. Unused permits accumulate.
      await this.#pauses.wait(Math.max(advisedMs, Math.min(advisedMs * refusals, leftMs / 2)), isBackground)
      now = { ...question, timeoutMs: Math.max(1, untilMs - this.#clock.now()) }
    }
  }

  /** Questions that wait to be repeated fail. */
  close(): void {
    this.#pauses.close()
  }

  async #askTwice(question: Question): Promise<Reply> {
    try {
      return await this.#askOnce(question, true)
    } catch (error) {
      if (!(error instanceof EndedError)) throw error
      return await this.#askOnce(question, false)
    }
  }

  #askOnce(question: Question, mayShare: boolean): Promise<Reply> {
    const { method, path, body, timeoutMs = TIMEOUT_MS_DEFAULT, isBackground = false } = question
    const text = body === undefined ? undefined : JSON.stringify(body)
    const isShort = path.length + (text?.length ?? 0) < PIPELINED_SIZE_MAX
    const pipeline = mayShare && isShort ? this.#target.pipeline(method !== 'GET') : undefined
    if (pipeline !== undefined) {
      return new Promise((resolve, reject) => {
        const request = requestText(method, path, this.#target.authorization, text)
        pipeline.ask({ text: request, timeoutMs, isBackground, resolve, reject })
      })
    }
    const headers =
      text === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
    return new Promise((resolve, reject) => {
      const call = this.#target.request(method, path, headers, false, response => {
        readReply(response).then(resolve, reject).finally(stop)
      })
      const stop = limitTime(this.#clock, call, timeoutMs, isBackground)
      call.once('error', error => {
        stop()
        reject(unavailable(error, call.reusedSocket))
      })
      call.end(text)
    })
  }
}

/** `path` and `method` are our own. */
function requestText(
  method: string,
  path: string,
  authorization: string | undefined,
  body: string | undefined,
): string {
  const who = authorization === undefined ? '' : `authorization: ${authorization}\r\n`
  const head = `${method} ${path} HTTP/1.1\r\nhost: localhost\r\n${who}`
  if (body === undefined) return `${head}\r\n`
  return `${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

function readReply(response: IncomingMessage): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    response.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= ANSWER_SIZE_MAX) chunks.push(chunk)
      else response.destroy(new NameError('ERR_NAMES_PROTOCOL', 'the answer is too long'))
    })
    response.once('error', error => reject(error instanceof NameError ? error : unavailable(error)))
    response.once('end', () => {
      const { statusCode = 0, headers } = response
      resolve({
        status: statusCode,
        text: Buffer.concat(chunks).toString('utf8'),
        cursor: headers['fastsockets-cursor']?.toString(),
        isStale: headers['fastsockets-stale'] === 'true',
      })
    })
  })
}

/** Ends the call when its time is up; the time begins with the connection. Returns the function that stops the clock. */
function limitTime(clock: Clock, call: ClientRequest, timeoutMs: number, isBackground: boolean): () => void {
  let timer: Timer | undefined
  call.once('socket', socket => {
    const giveUp = (): void => void call.destroy(new Error(`no answer in ${timeoutMs} ms`))
    timer = isBackground ? startInBackground(clock, giveUp, timeoutMs) : clock.setTimeout(giveUp, timeoutMs)
    if (isBackground) socket.unref()
  })
  return () => clock.clearTimeout(timer)
}
