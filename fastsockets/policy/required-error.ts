import type { Socket } from 'node:net'
import type { FallbackReason } from '../reasons.ts'

/** The policy requires the fast way, and it is not to be had. */
export class RequiredError extends Error {
  readonly code = 'ERR_FASTSOCKETS_REQUIRED'
  /** Why it is not. */
  readonly reason: FallbackReason

  constructor(reason: FallbackReason, cause?: Error) {
    super(`the policy requires the fast way: ${reason.text}`, cause && { cause })
    this.name = 'RequiredError'
    this.reason = reason
  }
}

/**
 * If the connect under way fails, the program hears that it was for want of the fast way. Node makes its own error of
 * every address that was tried, and destroys the socket with it: that one becomes the cause.
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

/** A later address has been reached after all. */
export function forgetFailure(socket: Socket): void {
  if (Object.hasOwn(socket, 'destroy')) Reflect.deleteProperty(socket, 'destroy')
}
