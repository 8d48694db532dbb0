import { rangeError, typeError } from './errors.ts'

export function assertPayload(payload: Uint8Array, max: number): void {
  if (!(payload instanceof Uint8Array)) throw typeError('a payload must be a Uint8Array')
  if (payload.length > max) throw rangeError(`a payload of ${payload.length} bytes; the most is ${max}`)
}
