/** Splits the replies of one connection. */
import { strange } from './answers.ts'

/** A page of 1000 entries of 16 KiB. */
export const ANSWER_SIZE_MAX = 16 * 1024 * 1024
const HEAD_SIZE_MAX = 16 * 1024
const HEAD_END = Buffer.from('\r\n\r\n')
const STATUS = /^http\/1\.1 ([1-5]\d\d) /
const LENGTH = /^\d{1,9}$/
const CONTINUE_MAX = 199
const NO_CONTENT = 204

export interface Reply {
  readonly status: number
  readonly text: string
  /** Header `fastsockets-cursor`. */
  readonly cursor: string | undefined
  readonly isStale: boolean
}

/** `isLast`: the connection carries no further reply. */
export type HandleReply = (reply: Reply, isLast: boolean) => void

export class ReplyReader {
  readonly #handleReply: HandleReply
  /** The beginning of an incomplete reply. */
  #chunks: Buffer[] = []
  #size = 0
  /** Bytes that are needed before another try. */
  #wanted = 0

  constructor(handleReply: HandleReply) {
    this.#handleReply = handleReply
  }

  /** Throws `ERR_NAMES_PROTOCOL` for anything that the daemon does not send. Its replies always have a length. */
  read(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    if (this.#size < this.#wanted) return
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks)
    let at = 0
    this.#wanted = 0
    for (let end = this.#readOne(bytes, at); end > at; end = this.#readOne(bytes, at)) at = end
    this.#wanted -= at
    this.#size = bytes.length - at
    this.#chunks = this.#size === 0 ? [] : [bytes.subarray(at)]
  }

  /** Returns where the next reply begins, or `at` if this one is incomplete. */
  #readOne(bytes: Buffer, at: number): number {
    const headEnd = bytes.indexOf(HEAD_END, at)
    if (headEnd < 0) {
      if (bytes.length - at > HEAD_SIZE_MAX) throw strange()
      return at
    }
    const head = bytes.toString('latin1', at, headEnd).toLowerCase()
    const status = Number(STATUS.exec(head)?.[1])
    const bodyAt = headEnd + HEAD_END.length
    if (status <= CONTINUE_MAX) return bodyAt
    const length = status === NO_CONTENT ? '0' : (field(head, 'content-length') ?? '')
    const end = bodyAt + Number(length)
    if (Number.isNaN(status) || !LENGTH.test(length) || end - bodyAt > ANSWER_SIZE_MAX) throw strange()
    if (end > bytes.length) {
      this.#wanted = end
      return at
    }
    const reply: Reply = {
      status,
      text: bytes.toString('utf8', bodyAt, end),
      cursor: field(head, 'fastsockets-cursor'),
      isStale: field(head, 'fastsockets-stale') === 'true',
    }
    this.#handleReply(reply, field(head, 'connection') === 'close')
    return end
  }
}

/** The value of a header; `head` and `name` are in lower case. */
function field(head: string, name: string): string | undefined {
  const lineAt = head.indexOf(`\r\n${name}:`)
  if (lineAt < 0) return undefined
  const at = lineAt + name.length + '\r\n:'.length
  const end = head.indexOf('\r\n', at)
  return head.slice(at, end < 0 ? undefined : end).trim()
}
