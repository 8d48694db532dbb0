/** What is kept for a UDP handle of Node, and what the handle's methods are. */
import { Given } from '../host/given.ts'
import { KeptContext } from '../host/kept-context.ts'
import type { FallbackCode } from '../reasons.ts'

/** As the kernel reports it: the sender of a datagram. */
export interface Sender {
  readonly address: string
  readonly family: string
  readonly port: number
}

export type OnMessage = (nread: number, handle: UdpHandle, bytes: Buffer, sender: Sender) => void
/** `port` is a boolean, whether there is a callback, if the socket is connected. */
export type Send = (
  this: UdpHandle,
  request: object,
  list: readonly Uint8Array[],
  count: number,
  port: number | boolean,
  address?: string,
  hasCallback?: boolean,
) => number

/** Node's UDP handle. */
export interface UdpHandle {
  send: Send
  onmessage?: OnMessage
  getsockname(out: Partial<Sender>): number
  bufferSize(size: number, isReceive: boolean, context: object): number | undefined
}

/** What a socket exchanges with one address of this host. */
export interface DatagramPair {
  readonly address: string
  readonly port: number
  /** What carries the datagrams to it, and from it. */
  readonly sends: 'udp' | 'shm'
  readonly receives: 'udp' | 'shm'
  /** Datagrams by shared memory since the pair was opened. */
  readonly sent: number
  readonly received: number
  /** Of those sent, and of those received: lost, because the receiver's socket was full. */
  readonly sentDropped: number
  readonly receivedDropped: number
}

/** What carries datagrams of one handle past the kernel, once the rest is loaded (carrier.ts). */
export interface Carrier {
  /** Bytes sent to an address, or to the peer of a connected socket; negative if the kernel is to send them. */
  send(request: object, list: readonly Uint8Array[], port: number | boolean, address?: string): number
  /** True if the program is not to see the datagram, which the kernel has delivered. */
  handleReceived(bytes: Buffer, sender: Sender): boolean
  /** The socket is connected to this place. */
  handleConnected(address: string, port: number): void
  handleReceiveLimit(): void
  /** Another policy is in force. */
  handlePolicy(): void
  /** From now on only the kernel may carry its datagrams. */
  leave(): void
  close(): void
  pairs(): DatagramPair[]
}

/** What is kept for a handle. */
export class UdpNotes {
  /** The asynchronous context of the socket, in which messages arrive. */
  readonly scope = new KeptContext()
  /** Node's own receiver, once the handle is bound. */
  onmessage: OnMessage | undefined
  /** Why only the kernel may carry its datagrams. */
  reason: FallbackCode | undefined
  connectedTo: { readonly address: string; readonly port: number } | undefined
  /** The program has chosen the size of the kernel's receive buffer. */
  hasReceiveLimit = false
  carrier: Carrier | undefined
  /** On the status page. */
  row: { close(): void } | undefined
}

/** The notes are a private field of the handle: programs that print or walk a socket find nothing of the runtime. */
class Noted extends Given {
  readonly #notes = new UdpNotes()

  static of(handle: object): UdpNotes | undefined {
    return #notes in handle ? (handle as Noted).#notes : undefined
  }
}

/** The notes of a new handle; made once. */
export function makeNotes(handle: UdpHandle): void {
  new Noted(handle)
}

/** Undefined for handles that were there before the program was relinked. */
export const udpNotesOf: (handle: UdpHandle) => UdpNotes | undefined = Noted.of

/** What the preload, and later the rest, wants to know. */
export const watching: {
  /** A datagram went to, or came from, an address that may be of this host. */
  onLocal: () => void
  /** A handle is bound. */
  onBound: (handle: UdpHandle, notes: UdpNotes) => void
} = { onLocal: () => {}, onBound: () => {} }

/** The handles that receive, with their notes. */
export const boundHandles = new Map<UdpHandle, UdpNotes>()
