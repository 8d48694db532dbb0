/** Checks of arguments that callers give. */
import { rangeError } from './errors.ts'
import { CREDITS_LIMIT, HANDLER_MASK } from './message-layout.ts'

export function assertCredits(credits: number): void {
  if (!Number.isInteger(credits) || credits < 1 || credits > CREDITS_LIMIT) {
    throw rangeError(`credits must be a whole number within 1..${CREDITS_LIMIT}, not ${String(credits)}`)
  }
}

export function assertReplyHandler(handler: number): void {
  if (!Number.isInteger(handler) || handler < 1 || handler > HANDLER_MASK) {
    throw rangeError(`a reply to handler ${String(handler)}, which is not within 1..${HANDLER_MASK}`)
  }
}
