/** Both sides of the handshake (handshake-layout.ts), over a socket of Node. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import { NicError } from '../errors.ts'
import { randomBytes } from '../random.ts'
import {
  ACCEPTED,
  AT_CHALLENGE_HAS_KEY,
  AT_CHALLENGE_NONCE,
  AT_CHALLENGE_STATUS,
  AT_HELLO_HAS_KEY,
  AT_HELLO_NONCE,
  AT_OFFER,
  AT_PURPOSE,
  AT_WELCOME_PROOF,
  CALLER_LABEL,
  CHALLENGE_SIZE,
  HELLO_SIZE,
  LISTENER_LABEL,
  MAGIC,
  NONCE_SIZE,
  OFFER_SIZE,
  PROOF_SIZE,
  PURPOSE_CONTROL,
  PURPOSE_FRAMES,
  REFUSALS,
  REFUSED_HAS_NO_KEY,
  REFUSED_NEEDS_KEY,
  REFUSED_NO_OFFER,
  REFUSED_PROOF,
  REFUSED_UNKNOWN_USER,
  REFUSED_USER,
  WELCOME_SIZE,
} from './handshake-layout.ts'
import { type ExpectedCall, expectedCall } from './offers.ts'
import { judgePeer } from './peer-user.ts'

const NO_OFFER = Buffer.alloc(OFFER_SIZE)
const NO_BYTES = Buffer.alloc(0)

export interface Answering {
  /** The key that both hosts share. */
  readonly key: Buffer | undefined
  /**
   * Callers take up local offers, whose secrets say enough. Otherwise callers know the key or, without one, belong to
   * our own user.
   */
  readonly isLocal: boolean
}

export interface Calling {
  readonly key: Buffer | undefined
  /** Without a key: only a process of our own user may listen there. */
  readonly checksUser: boolean
  /** The offer to take up; undefined for a connection that carries messages of the layer above. */
  readonly offer: { readonly id: Buffer; readonly secret: Buffer } | undefined
}

/**
 * The listening side: resolves with the offer that the caller takes up, or with undefined if the connection is for the
 * layer above. Rejects after a refusal; the caller of this function destroys the socket then.
 */
export async function answerCall(socket: Socket, answering: Answering): Promise<ExpectedCall | undefined> {
  const { key, isLocal } = answering
  const hello = await receive(socket, HELLO_SIZE)
  const purpose = hello[AT_PURPOSE]
  const isKnown = purpose === PURPOSE_CONTROL || purpose === PURPOSE_FRAMES
  if (!hello.subarray(0, MAGIC.length).equals(MAGIC) || !isKnown) throw badBytes()
  const challenge = Buffer.alloc(CHALLENGE_SIZE)
  MAGIC.copy(challenge)
  const refuse = (status: number): NicError => {
    challenge[AT_CHALLENGE_STATUS] = status
    socket.end(challenge)
    return refusal(status)
  }
  const hasKey = hello[AT_HELLO_HAS_KEY] === 1
  if (key !== undefined && !hasKey) throw refuse(REFUSED_NEEDS_KEY)
  if (key === undefined && hasKey) throw refuse(REFUSED_HAS_NO_KEY)
  if (!isLocal && key === undefined) {
    const judgement = judgePeer(socket)
    if (judgement !== 'own') throw refuse(judgement === 'other' ? REFUSED_USER : REFUSED_UNKNOWN_USER)
  }
  const id = hello.toString('hex', AT_OFFER, AT_OFFER + OFFER_SIZE)
  const call = purpose === PURPOSE_FRAMES ? expectedCall(id, isLocal) : undefined
  if (purpose === PURPOSE_FRAMES && call === undefined) throw refuse(REFUSED_NO_OFFER)
  challenge[AT_CHALLENGE_HAS_KEY] = key === undefined ? 0 : 1
  randomBytes(NONCE_SIZE).copy(challenge, AT_CHALLENGE_NONCE)
  socket.write(challenge)
  const proof = await receive(socket, PROOF_SIZE)
  const secret = Buffer.concat([key ?? NO_BYTES, call?.secret ?? NO_BYTES])
  const welcome = Buffer.alloc(WELCOME_SIZE)
  if (!timingSafeEqual(proof, proofOf(secret, CALLER_LABEL, hello, challenge))) {
    welcome[0] = REFUSED_PROOF
    socket.end(welcome)
    throw refusal(REFUSED_PROOF)
  }
  // The offer may have been taken up, or have expired, since the HELLO.
  if (call !== undefined && expectedCall(id, isLocal) !== call) {
    welcome[0] = REFUSED_NO_OFFER
    socket.end(welcome)
    throw refusal(REFUSED_NO_OFFER)
  }
  proofOf(secret, LISTENER_LABEL, hello, challenge).copy(welcome, AT_WELCOME_PROOF)
  socket.write(welcome)
  return call
}

/** The calling side: resolves once the listening side has proved itself. Bytes behind the handshake stay unread. */
export async function introduce(socket: Socket, calling: Calling): Promise<void> {
  const { key, checksUser, offer } = calling
  const hello = Buffer.alloc(HELLO_SIZE)
  MAGIC.copy(hello)
  hello[AT_PURPOSE] = offer === undefined ? PURPOSE_CONTROL : PURPOSE_FRAMES
  hello[AT_HELLO_HAS_KEY] = key === undefined ? 0 : 1
  ;(offer?.id ?? NO_OFFER).copy(hello, AT_OFFER)
  randomBytes(NONCE_SIZE).copy(hello, AT_HELLO_NONCE)
  socket.write(hello)
  const challenge = await receive(socket, CHALLENGE_SIZE)
  if (!challenge.subarray(0, MAGIC.length).equals(MAGIC)) throw badBytes()
  if (challenge[AT_CHALLENGE_STATUS] !== ACCEPTED) throw refusal(challenge[AT_CHALLENGE_STATUS] as number)
  if ((challenge[AT_CHALLENGE_HAS_KEY] === 1) !== (key !== undefined)) throw badBytes()
  if (checksUser && key === undefined) assertOwnUser(socket)
  const secret = Buffer.concat([key ?? NO_BYTES, offer?.secret ?? NO_BYTES])
  socket.write(proofOf(secret, CALLER_LABEL, hello, challenge))
  const welcome = await receive(socket, WELCOME_SIZE, true)
  if (welcome[0] !== ACCEPTED) throw refusal(welcome[0] as number)
  const proof = welcome.subarray(AT_WELCOME_PROOF)
  if (!timingSafeEqual(proof, proofOf(secret, LISTENER_LABEL, hello, challenge)))
    throw new NicError('ERR_NIC_PEER_REFUSED', 'the other side does not know the key')
}

function assertOwnUser(socket: Socket): void {
  const judgement = judgePeer(socket)
  if (judgement === 'own') return
  const why =
    judgement === 'other'
      ? 'a process of another user listens at that address'
      : 'the kernel does not say which user listens at that address: set FASTSOCKETS_KEY_FILE on both sides'
  throw new NicError('ERR_NIC_PEER_REFUSED', why)
}

function proofOf(key: Buffer, label: string, hello: Buffer, challenge: Buffer): Buffer {
  return createHmac('sha256', key).update(label).update(hello).update(challenge).digest()
}

/** The next `length` bytes. Rejects at the end of the stream, and if more have arrived, unless `mayBeMore`. */
function receive(socket: Socket, length: number, mayBeMore = false): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const finish = (error: Error | undefined, bytes: Buffer = NO_BYTES): void => {
      socket.off('readable', read)
      socket.off('close', fail)
      if (error === undefined) resolve(bytes)
      else reject(error)
    }
    const fail = (): void => {
      const cause = socket.errored as NodeJS.ErrnoException | null
      const why = cause === null ? 'the other side hung up' : cause.message
      finish(new NicError('ERR_NIC_CONNECT_FAILED', why, { errno: Math.abs(cause?.errno ?? 0) }))
    }
    const read = (): void => {
      const bytes = socket.read(length) as Buffer | null
      if (bytes === null) return
      if (bytes.length < length) return fail()
      if (!mayBeMore && socket.readableLength > 0) finish(badBytes())
      else finish(undefined, bytes)
    }
    socket.on('readable', read)
    socket.on('close', fail)
    if (socket.destroyed) fail()
    else read()
  })
}

function refusal(status: number): NicError {
  return new NicError(
    'ERR_NIC_PEER_REFUSED',
    `the call was refused: ${REFUSALS[status] ?? `status ${status}`}`,
  )
}

function badBytes(): NicError {
  return new NicError('ERR_NIC_PROTOCOL_VIOLATION', 'the other side does not speak this protocol')
}
