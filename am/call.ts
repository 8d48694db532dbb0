import { AmError } from './errors.ts'
import type { Message } from './message.ts'
import { ReceivedMessage } from './received-message.ts'
import type { PendingCall } from './request-log.ts'
import type { UndeliverableReason } from './undeliverable.ts'

export interface WaitOptions {
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
}

/** A request whose reply settles a promise, and not a handler of the table. */
export class Call implements PendingCall {
  readonly reply: Promise<ReceivedMessage>
  readonly #what: string
  #resolve: (message: ReceivedMessage) => void = () => {}
  #reject: (error: Error) => void = () => {}

  constructor(what: string) {
    this.#what = what
    this.reply = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // It may end while its caller still waits for a credit; he looks at it after that.
    this.reply.catch(() => {})
  }

  handleReply(message: Message): void {
    this.#resolve(new ReceivedMessage(message))
  }

  handleReturn(reason: UndeliverableReason): void {
    this.#reject(new AmError('ERR_AM_UNDELIVERABLE', `${this.#what} came back: ${reason}`, { reason }))
  }

  handleNoReply(): void {
    this.#reject(new AmError('ERR_AM_NO_REPLY', `${this.#what}: its handler returned without a reply`))
  }

  handleClosed(): void {
    this.#reject(new AmError('ERR_AM_CLOSED', `${this.#what}: the endpoint was closed`))
  }
}

/** What `promise` settles with, unless the signal or the clock comes first. */
export async function within<T>(promise: Promise<T>, what: string, options: WaitOptions): Promise<T> {
  const { signal, timeoutMs } = options
  if (signal === undefined && timeoutMs === undefined) return await promise
  signal?.throwIfAborted()
  let timer: NodeJS.Timeout | undefined
  let abort = (): void => {}
  const interruption = new Promise<never>((_, reject) => {
    abort = () => reject(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    if (timeoutMs !== undefined) {
      const error = new AmError('ERR_AM_TIMEOUT', `${what}: nothing within ${timeoutMs} ms`)
      timer = setTimeout(() => reject(error), timeoutMs)
    }
  })
  try {
    return await Promise.race([promise, interruption])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}
