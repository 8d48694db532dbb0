import { knowsItsPort } from './promised-ports.ts'
import type { Stream } from './stream.ts'
import { EARLY_WINDOW } from './stream-layout.ts'
import { showStream } from './stream-rows.ts'

/** How far a connection is on its way. */
export class Handshake {
  /** The CONNECT is out, or has come. */
  isAsked = false
  /** The program takes it for connected, before there is an answer. */
  isPresumed = false
  /** The server has accepted. */
  isAnswered = false
  /** Bytes that a client may have under way before the answer. */
  earlyWindow = EARLY_WINDOW

  /** The peer may be told of bytes and ends. */
  get maySend(): boolean {
    return this.isAnswered || (this.isPresumed && this.isAsked)
  }
}

/** The program is told that it is connected, before there is an answer. */
export function presumeConnected(stream: Stream): void {
  stream.state = 'presumed'
  stream.handshake.isPresumed = true
  const { earlyWindow } = stream.handshake
  stream.outgoing.window.open(earlyWindow)
  if (stream.promisedPort > 0 && stream.addresses !== undefined)
    stream.addresses.clientPort = stream.promisedPort
  // Otherwise it is shown when it is answered, which says the port.
  if (knowsItsPort(stream)) showStream(stream, earlyWindow)
}
