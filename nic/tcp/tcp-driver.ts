/**
 * Any two hosts, by a kernel TCP connection that is driven without the event loop. An offer is taken up at a loopback
 * port that is open as long as the offer; or, with `hasAddress`, at an address where this process listens (tcp-port.ts).
 */
import type net from 'node:net'
import { NicError } from '../errors.ts'
import type { Availability, ConnectOptions, Offer, OfferOptions, VirtualInterface } from '../nic.ts'
import { mayUseNetwork } from '../permission.ts'
import { type Libc, loadLibc, requireLibc } from '../posix/libc.ts'
import { duplicate } from '../posix/unix-socket.ts'
import { randomBytes } from '../random.ts'
import { clearTimeout, setTimeout } from '../real-time.ts'
import { isRingSize, RING_SIZE_DEFAULT } from '../ring/ring-layout.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import { decodeBlob, encodeBlob, SECRET_SIZE } from './blob-layout.ts'
import { callListener, LOOPBACK_HOST } from './calling.ts'
import { OFFER_SIZE } from './handshake-layout.ts'
import { expectCall } from './offers.ts'
import { readKey } from './shared-key.ts'
import { TcpInterface } from './tcp-interface.ts'
import { TcpListener } from './tcp-listener.ts'
import { TcpWire } from './tcp-wire.ts'

export { callAddress } from './calling.ts'
export { keyFile, readKey } from './shared-key.ts'
export { limitSilenceOf } from './silence.ts'
export { openTcpPort } from './tcp-port.ts'

const TIMEOUT_MS_DEFAULT = 5000
/** Time after which a silent host counts as dead. */
export const PEER_TIMEOUT_MS_DEFAULT = 30_000
/** Largest queues that an offer can make the connecting side allocate; the offer may come from a stranger. */
const QUEUE_CONNECTED_MAX = 16 * RING_SIZE_DEFAULT
const NO_BYTES = Buffer.alloc(0)

/** The thread's loopback port, and the offers that use it. */
let here: TcpListener | undefined
let offersHere = 0

export function availability(): Availability {
  const { libc, code, reason } = loadLibc()
  if (libc === undefined) return { usable: false, code, reason }
  return mayUseNetwork()
    ? { usable: true }
    : { usable: false, code: 'PERMISSION', reason: 'the permission model lets this program use no network' }
}

export function offer(options: OfferOptions = {}): Offer {
  const queueSize = options.queueSize ?? RING_SIZE_DEFAULT
  if (!isRingSize(queueSize))
    throw new NicError('ERR_NIC_ARGUMENT', 'queueSize must be a power of two between 64 KiB and 1 GiB')
  const libc = requireLibc()
  const { hasAddress = false, peerTimeoutMs = PEER_TIMEOUT_MS_DEFAULT } = options
  const id = randomBytes(OFFER_SIZE)
  const secret = randomBytes(SECRET_SIZE)
  const port = hasAddress ? 0 : openHere(libc)
  let cancel = (): void => {}
  const accepted = new Promise<VirtualInterface>((resolve, reject) => {
    /** False if the offer is over already. */
    const end = (): boolean => {
      clearTimeout(timer)
      if (!forget()) return false
      if (!hasAddress) closeHere()
      return true
    }
    const fail = (message: string): void => {
      if (end()) reject(new NicError('ERR_NIC_CONNECT_FAILED', message))
    }
    const timer = setTimeout(
      () => fail('the offer was not taken up in time'),
      options.timeoutMs ?? TIMEOUT_MS_DEFAULT,
    )
    timer.unref()
    cancel = () => fail('the offer was cancelled')
    const accept = (socket: net.Socket): void => {
      if (!end()) return void socket.destroy()
      try {
        resolve(openEnd(libc, socket, queueSize, peerTimeoutMs))
      } catch (error) {
        reject(error)
      }
    }
    const forget = expectCall(id, { secret, isLocal: !hasAddress, accept: accept })
  })
  accepted.catch(() => {})
  return { blob: encodeBlob({ queueSize, port, id, secret }), accepted, cancel: () => cancel() }
}

export async function connect(given: Uint8Array, options: ConnectOptions = {}): Promise<VirtualInterface> {
  const blob = decodeBlob(given)
  const { address, peerTimeoutMs = PEER_TIMEOUT_MS_DEFAULT } = options
  if (blob === undefined || (blob.port === 0 && address === undefined))
    throw new NicError('ERR_NIC_BAD_ADDRESS', 'this is not the address of an offer over TCP')
  const queueSizeMax = Math.min(QUEUE_CONNECTED_MAX, options.queueSizeMax ?? QUEUE_CONNECTED_MAX)
  if (blob.queueSize > queueSizeMax)
    throw new NicError(
      'ERR_NIC_PROTOCOL_VIOLATION',
      `the peer offers a ring size ${blob.queueSize}; ${queueSizeMax} is the most`,
    )
  const libc = requireLibc()
  const { id, secret, port, queueSize } = blob
  const isLocal = port !== 0
  const socket = await callListener(
    isLocal ? { host: LOOPBACK_HOST, port } : (address as { host: string; port: number }),
    { key: isLocal ? undefined : readKey(), checksUser: !isLocal, offer: { id, secret } },
    options.timeoutMs ?? TIMEOUT_MS_DEFAULT,
  )
  return openEnd(libc, socket, queueSize, peerTimeoutMs)
}

/** Moves the connection to a descriptor of the interface's own: Node's socket would allocate for each read. */
function openEnd(libc: Libc, socket: net.Socket, queueSize: number, peerTimeoutMs: number): TcpInterface {
  const { fd } = (socket as unknown as { _handle: { fd: number } | null })._handle ?? { fd: -1 }
  try {
    if (fd < 0) throw new NicError('ERR_NIC_CONNECT_FAILED', 'the other side hung up')
    const wire = undisturbed(() => new TcpWire(libc, duplicate(libc, fd), peerTimeoutMs))
    // A caller sends frames as soon as it knows that it was accepted: behind the handshake.
    return new TcpInterface(libc, wire, queueSize, (socket.read() as Buffer | null) ?? NO_BYTES)
  } finally {
    socket.destroy()
  }
}

/** Opens the loopback port for one more offer; returns its number. */
function openHere(libc: Libc): number {
  if (here === undefined) {
    const listener = new TcpListener({ key: undefined, isLocal: true }, socket => socket.destroy())
    listener.listenHere(libc)
    here = listener
  }
  offersHere++
  return here.port
}

function closeHere(): void {
  if (--offersHere > 0) return
  here?.close()
  here = undefined
}
