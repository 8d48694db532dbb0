import type { Socket } from 'node:net'
import type { FallbackReason } from '../reasons.ts'

/** The policy requires the fast way, which is not available. */
export class RequiredError extends Error {
  readonly code = 'ERR_FASTSOCKETS_REQUIRED'
  /** Why it is not available. */
  readonly reason: FallbackReason

  constructor(reason: FallbackReason, cause?: Error) {
    super(`the policy requires the fast way: ${reason.text}`, cause && { cause })
    this.name = 'RequiredError'
    this.reason = reason
  }
}

/**
 * If the connect under way fails, the program receives a `RequiredError`. Node makes an error of its own from all
 * addresses that it has tried, and destroys the socket with it: that error becomes the cause.
 */
export function explainFailure(socket: Socket, reason: FallbackReason): void {
  Object.defineProperty(socket, 'destroy', {
    configurable: true,
    writable: true,
    value(this: Socket, error?: Error): Socket {
      Reflect.deleteProperty(socket, 'destroy')
      return socket.destroy(isOfConnect(error) ? new RequiredError(reason, error) : error)
    },
  })
}

function isOfConnect(error: unknown): error is Error {
  return (
    error instanceof AggregateError || (error as NodeJS.ErrnoException | undefined)?.syscall === 'connect'
  )
}

/** Undoes `explainFailure`: a later address was reached. */
export function forgetFailure(socket: Socket): void {
  if (Object.hasOwn(socket, 'destroy')) Reflect.deleteProperty(socket, 'destroy')
}
