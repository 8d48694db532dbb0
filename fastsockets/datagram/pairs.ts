/** The pairs whose receiving end is in this thread, by their secrets. */
import { REFUSAL } from '../bootstrap/bootstrap-layout.ts'
import type { Accepted, SocketStream } from '../stream/socket-channel.ts'
import { isSecret } from './datagram-layout.ts'
import { DatagramReceiver } from './datagram-receiver.ts'

/** Secrets that are known, those of pairs that are over among them: their markers may still come. */
const SECRETS_MAX = 4096
/** The protocol needs a number other than 0. */
const NO_PORT = 1

/** Null for a pair that is over. */
const receivers = new Map<string, DatagramReceiver | null>()

/** Null if the pair is over; undefined if no such pair is known. */
export function awaitedReceiver(secret: string): DatagramReceiver | null | undefined {
  return receivers.get(secret)
}

/** Only for processes of our own user, as for connections that move: a PROBE proves addresses, not a user. */
export function acceptPair(
  stream: SocketStream,
  secret: string,
  promisedPort: number,
  mayReceive: () => boolean,
): number | Accepted {
  const { portShare } = stream.channel
  if (!stream.channel.isOfOwnUser) return REFUSAL.OTHER_USER
  if (!isSecret(secret) || receivers.has(secret) || !mayReceive()) return REFUSAL.NOT_LISTENING
  if (receivers.size >= SECRETS_MAX && !forgetOldest()) return REFUSAL.LIMIT
  portShare.release(promisedPort)
  stream.isOfDatagrams = true
  const receiver = new DatagramReceiver(stream, () => receivers.set(secret, null))
  receivers.set(secret, receiver)
  const begin = (): void => {
    stream.sink = receiver
  }
  return { clientPort: promisedPort || NO_PORT, begin }
}

function forgetOldest(): boolean {
  for (const [secret, receiver] of receivers) {
    if (receiver !== null) continue
    receivers.delete(secret)
    return true
  }
  return false
}
