/** Every error that this layer makes, by its stable code. */
export type AmErrorCode =
  /** An argument that can never be right: a handler index, a word count, a length. */
  | 'ERR_AM_ARGUMENT'
  /** A handler replied twice, replied to a reply, or used a message after its handler had returned. */
  | 'ERR_AM_TOKEN'
  /** The peer broke the protocol of this layer or of the one below; `cause` says how. */
  | 'ERR_AM_PROTOCOL_VIOLATION'
  /** The endpoint or channel is closed. */
  | 'ERR_AM_CLOSED'

export class AmError extends Error {
  readonly code: AmErrorCode

  constructor(code: AmErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'AmError'
    this.code = code
  }
}
