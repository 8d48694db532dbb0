/** Refusals of invalid arguments, kept out of the hot path of senders. */
import { AmError, rangeError } from './errors.ts'
import { HANDLER_COUNT } from './message-layout.ts'

/** Entries of the translation table. */
export const DESTINATIONS_MAX = 65536

export function refuseInHandler(): never {
  throw new AmError('ERR_AM_HANDLER_RULE', 'a handler may reply to its own request, and send nothing else')
}

export function refuseHandler(handler: number): never {
  throw rangeError(`a request for handler ${String(handler)}, which is not within 1..${HANDLER_COUNT - 1}`)
}

export function refuseDestination(destination: number): never {
  assertDestination(destination)
  throw rangeError(`destination ${destination} is not mapped`, 'ERR_AM_NOT_MAPPED')
}

export function assertDestination(destination: number): void {
  if (!Number.isInteger(destination) || destination < 0 || destination >= DESTINATIONS_MAX) {
    throw rangeError(`destination ${String(destination)} is not within 0..${DESTINATIONS_MAX - 1}`)
  }
}
