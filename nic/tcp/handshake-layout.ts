/**
 * The first bytes of every connection: both sides prove that they know the key, before anything else is read. Fixed sizes.
 *
 *   caller                                         listener
 *   HELLO      magic(8) purpose(1) hasKey(1)
 *              zero(6) offer(16) nonce(32)    -->
 *                                             <--  CHALLENGE  magic(8) status(1) hasKey(1) zero(6) nonce(32)
 *   PROOF      HMAC(32)                       -->
 *                                             <--  WELCOME    status(1) zero(7) HMAC(32)
 *
 *   PROOF    HMAC-SHA-256(key, 'fastsockets tcp caller'   HELLO CHALLENGE)
 *   WELCOME  HMAC-SHA-256(key, 'fastsockets tcp listener' HELLO CHALLENGE)
 *
 * Both nonces are fresh, so an old PROOF or WELCOME fits no other connection; the labels differ, so neither side accepts
 * its own bytes. The listener proves itself to callers only that have proved themselves. A status other than ACCEPTED ends
 * the connection.
 */
export const MAGIC = Buffer.from('FSTCP 1\n')
export const OFFER_SIZE = 16
export const NONCE_SIZE = 32
export const PROOF_SIZE = 32

export const AT_PURPOSE = 8
export const AT_HELLO_HAS_KEY = 9
export const AT_OFFER = 16
export const AT_HELLO_NONCE = 32
export const HELLO_SIZE = 64

export const AT_CHALLENGE_STATUS = 8
export const AT_CHALLENGE_HAS_KEY = 9
export const AT_CHALLENGE_NONCE = 16
export const CHALLENGE_SIZE = 48

export const AT_WELCOME_PROOF = 8
export const WELCOME_SIZE = 40

export const CALLER_LABEL = 'fastsockets tcp caller'
export const LISTENER_LABEL = 'fastsockets tcp listener'

/** The connection carries messages of the layer above, not frames. */
export const PURPOSE_CONTROL = 1
/** The connection takes up the offer, and carries frames. */
export const PURPOSE_FRAMES = 2

export const ACCEPTED = 0
export const REFUSED_NO_OFFER = 1
export const REFUSED_NEEDS_KEY = 2
export const REFUSED_HAS_NO_KEY = 3
export const REFUSED_PROOF = 4
export const REFUSED_USER = 5
export const REFUSED_BUSY = 6
export const REFUSED_UNKNOWN_USER = 7

/** For people, as the caller reads them. */
export const REFUSALS: Readonly<Record<number, string>> = {
  [REFUSED_NO_OFFER]: 'it does not expect this call (any more)',
  [REFUSED_NEEDS_KEY]: 'it asks for a key, and this side has none: set FASTSOCKETS_KEY_FILE',
  [REFUSED_HAS_NO_KEY]: 'it has no key, and this side has one: both need the same',
  [REFUSED_PROOF]: 'its key is not the key of this side',
  [REFUSED_USER]: 'it has no key, and serves only its own user on its own host',
  [REFUSED_BUSY]: 'too many callers wait there already',
  [REFUSED_UNKNOWN_USER]: 'its kernel does not say which user calls: set FASTSOCKETS_KEY_FILE on both sides',
}
