import type { Clock, Timer } from '../nic/clock.ts'
import { watchAbort } from './abort-watch.ts'
import { AmError, rangeError, typeError } from './errors.ts'
import { Message } from './message.ts'
import { ReceivedMessage } from './received-message.ts'
import type { PendingCall } from './request-log.ts'
import type { UndeliverableReason } from './undeliverable.ts'

/** Longest delay of Node's timers. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1

export interface WaitOptions {
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
}

/** A request whose reply settles a promise instead of running a handler of the table. */
export class Call implements PendingCall {
  readonly reply: Promise<ReceivedMessage>
  #resolve!: (reply: ReceivedMessage) => void
  #reject!: (error: Error) => void
  readonly #destination: number
  readonly #handler: number

  constructor(destination: number, handler: number) {
    this.#destination = destination
    this.#handler = handler
    this.reply = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Description of the call for error messages. */
  get what(): string {
    return `the call of handler ${this.#handler} at destination ${this.#destination}`
  }

  handleReply(reply: Message): void {
    this.#resolve(Message.copyOf(reply, ReceivedMessage))
  }

  handleReturn(reason: UndeliverableReason): void {
    this.#reject(new AmError('ERR_AM_UNDELIVERABLE', `${this.what} came back: ${reason}`, { reason }))
  }

  handleNoReply(): void {
    this.#reject(new AmError('ERR_AM_NO_REPLY', `${this.what}: its handler returned without a reply`))
  }

  handleClosed(): void {
    this.#reject(new AmError('ERR_AM_CLOSED', `${this.what}: the endpoint was closed`))
  }
}

/** Throws on invalid options, and throws the signal's reason if it is aborted already. */
export function checkWait(options: WaitOptions): void {
  if (typeof options !== 'object' || options === null) throw typeError('options must be an object')
  for (const key of Object.keys(options)) {
    if (key !== 'signal' && key !== 'timeoutMs') throw typeError(`there is no option ${key}`)
  }
  const { signal, timeoutMs } = options
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw typeError('signal must be an AbortSignal')
  if (
    timeoutMs !== undefined &&
    !(typeof timeoutMs === 'number' && timeoutMs >= 0 && timeoutMs <= TIMEOUT_MS_MAX)
  ) {
    throw rangeError(`timeoutMs must be a number within 0..${TIMEOUT_MS_MAX}, not ${String(timeoutMs)}`)
  }
  signal?.throwIfAborted()
}

/** Settles as `promise` does, unless the signal or the timeout comes first. The options must have been checked. */
export async function within<T>(
  promise: Promise<T>,
  what: string,
  options: WaitOptions,
  clock: Clock,
): Promise<T> {
  const { signal, timeoutMs } = options
  if (signal === undefined && timeoutMs === undefined) return await promise
  let timer: Timer | undefined
  let forget = (): void => {}
  const interruption = new Promise<never>((_, reject) => {
    if (signal !== undefined) forget = watchAbort(signal, reject)
    if (timeoutMs !== undefined) {
      const error = new AmError('ERR_AM_TIMEOUT', `${what}: nothing within ${timeoutMs} ms`)
      timer = clock.setTimeout(() => reject(error), timeoutMs)
    }
  })
  try {
    return await Promise.race([promise, interruption])
  } finally {
    clock.clearTimeout(timer)
    forget()
  }
}
