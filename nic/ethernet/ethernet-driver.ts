/**
 * Two hosts on one Ethernet segment, or two ends within a host: raw frames, as "sockets over EMP" (2002). The blob of the
 * offer goes to the connecting side, and its reply to the offering side; then each side says HELLO until it hears the other.
 */
import { hkdfSync } from 'node:crypto'
import { NicError } from '../errors.ts'
import type {
  Availability,
  ConnectOptions,
  NetworkPath,
  Offer,
  OfferOptions,
  VirtualInterface,
} from '../nic.ts'
import { mayUseNetwork } from '../permission.ts'
import { type Libc, loadLibc, requireLibc } from '../posix/libc.ts'
import { randomBytes } from '../random.ts'
import { clearTimeout, setTimeout } from '../real-time.ts'
import { isRingSize, RING_SIZE_DEFAULT } from '../ring/ring-layout.ts'
import { readKey } from '../tcp/shared-key.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import {
  decodeAddress,
  type EndAddress,
  encodeAddress,
  OFFER_MAGIC,
  RANDOM_SIZE,
  REPLY_MAGIC,
} from './address-layout.ts'
import { type Device, deviceFor } from './device.ts'
import { EthernetInterface } from './ethernet-interface.ts'
import { ID_SIZE } from './frame-layout.ts'
import { type FrameKey, KEYS_SIZE, keysFrom, prepareTags } from './frame-tag.ts'
import { HELPER_VARIABLE, openPacketSocket } from './open-socket.ts'
import { PacketSocket } from './packet-socket.ts'
import { ringShape } from './ring-layout.ts'

const TIMEOUT_MS_DEFAULT = 5000
/** Two hosts on one segment hear each other within a round trip; a segment that forwards no such frames costs so long. */
const MEET_MS_MAX = 1000
/** Largest queue that an offer can make the connecting side allocate; the offer may come from a stranger. */
const QUEUE_CONNECTED_MAX = 16 * RING_SIZE_DEFAULT
const KEY_LABEL = 'fastsockets ethernet'
const NO_KEY = Buffer.alloc(0)

/** Offers of this thread, by their random bytes: for connecting sides of this process. */
const pending = new Map<string, (reply: Uint8Array) => void>()
let known: Availability | undefined

export function availability(): Availability {
  known ??= probe()
  return known
}

function probe(): Availability {
  const { libc, code, reason } = loadLibc()
  if (libc === undefined) return { usable: false, code, reason }
  if (!mayUseNetwork())
    return {
      usable: false,
      code: 'PERMISSION',
      reason: 'the permission model lets this program use no network',
    }
  try {
    prepareTags()
  } catch (error) {
    const reason = `the tags of frames need WebAssembly: ${(error as Error).message}`
    return { usable: false, code: 'WEBASSEMBLY', reason }
  }
  const fd = undisturbed(() => openPacketSocket(libc, randomBytes(ID_SIZE)))
  if (fd >= 0) {
    libc.close(fd)
    return { usable: true }
  }
  return { usable: false, code: libc.errnoName(-fd), reason: whyNot(libc, -fd) }
}

function whyNot(libc: Libc, errno: number): string {
  const { [HELPER_VARIABLE]: helper } = process.env
  const asked = helper ? `, and the helper at ${helper} gives none` : ''
  return `raw frames need CAP_NET_RAW${asked} (${libc.errnoName(errno)})`
}

/** What one side has made before it knows the other. */
interface End {
  readonly socket: PacketSocket
  readonly device: Device
  readonly address: EndAddress
}

export function offer(options: OfferOptions = {}): Offer {
  const queueSize = options.queueSize ?? RING_SIZE_DEFAULT
  if (!isRingSize(queueSize))
    throw new NicError('ERR_NIC_ARGUMENT', 'queueSize must be a power of two between 64 KiB and 1 GiB')
  const libc = requireLibc()
  const sharedKey = options.path && readKey()
  const end = openEnd(libc, options.path, queueSize)
  const blob = encodeAddress(OFFER_MAGIC, end.address)
  const name = end.address.random.toString('hex')
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS_DEFAULT
  let cancel = (): void => {}
  const accepted = new Promise<VirtualInterface>((resolve, reject) => {
    /** False if the offer is over already. */
    const finish = (): boolean => {
      clearTimeout(timer)
      return pending.delete(name)
    }
    const fail = (message: string): void => {
      if (!finish()) return
      end.socket.close()
      reject(new NicError('ERR_NIC_CONNECT_FAILED', message))
    }
    const timer = setTimeout(() => fail('the offer was not taken up in time'), timeoutMs)
    timer.unref()
    cancel = () => fail('the offer was cancelled')
    pending.set(name, reply => {
      const peer = decodeAddress(REPLY_MAGIC, reply)
      if (peer === undefined) return fail('the connecting side answered something else')
      if (!finish()) return
      const [fromOfferer, toOfferer] = keysOf(sharedKey, blob, reply)
      connectEnd(libc, end, peer, fromOfferer, toOfferer, timeoutMs).then(resolve, reject)
    })
  })
  accepted.catch(() => {})
  return { blob, accepted, cancel: () => cancel(), answer: reply => pending.get(name)?.(reply) }
}

export async function connect(blob: Uint8Array, options: ConnectOptions = {}): Promise<VirtualInterface> {
  const peer = decodeAddress(OFFER_MAGIC, blob)
  if (peer === undefined)
    throw new NicError('ERR_NIC_BAD_ADDRESS', 'this is not the address of an offer over Ethernet')
  const queueSizeMax = Math.min(QUEUE_CONNECTED_MAX, options.queueSizeMax ?? QUEUE_CONNECTED_MAX)
  if (peer.queueSize > queueSizeMax)
    throw new NicError(
      'ERR_NIC_PROTOCOL_VIOLATION',
      `the peer offers a queue of ${peer.queueSize} bytes; ${queueSizeMax} is the most`,
    )
  const reply = options.reply ?? pending.get(peer.random.toString('hex'))
  if (reply === undefined)
    throw new NicError(
      'ERR_NIC_CONNECT_FAILED',
      'the offer is over, or of another process, and the caller gave no way to carry the reply',
    )
  const libc = requireLibc()
  const sharedKey = options.path && readKey()
  const end = openEnd(libc, options.path, peer.queueSize)
  const own = encodeAddress(REPLY_MAGIC, end.address)
  const [fromOfferer, toOfferer] = keysOf(sharedKey, blob, own)
  reply(own)
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS_DEFAULT
  return await connectEnd(libc, end, peer, toOfferer, fromOfferer, timeoutMs)
}

/** The receive queue is posted from now on: the peer may send as soon as it knows this end. */
function openEnd(libc: Libc, path: NetworkPath | undefined, queueSize: number): End {
  return undisturbed(() => {
    const id = randomBytes(ID_SIZE)
    const fd = openPacketSocket(libc, id)
    if (fd < 0) throw new NicError('ERR_NIC_UNAVAILABLE', whyNot(libc, -fd))
    let device: Device
    try {
      device = deviceFor(libc, fd, path)
    } catch (error) {
      libc.close(fd)
      throw error
    }
    const { mtu, mac } = device
    const socket = new PacketSocket(libc, fd, device, queueSize)
    return { socket, device, address: { queueSize, mtu, mac, id, random: randomBytes(RANDOM_SIZE) } }
  })
}

async function connectEnd(
  libc: Libc,
  { socket, device, address }: End,
  peer: EndAddress,
  sendKey: FrameKey,
  receiveKey: FrameKey,
  timeoutMs: number,
): Promise<EthernetInterface> {
  prepareTags()
  const end = new EthernetInterface(libc, socket, device, {
    peerMac: peer.mac,
    peerId: peer.id,
    mtu: Math.min(address.mtu, peer.mtu),
    receiveDescriptors: Math.min(socket.shape.slotCount, ringShape(address.queueSize, peer.mtu).slotCount),
    sendKey,
    receiveKey,
  })
  try {
    await end.meet(Math.min(timeoutMs, MEET_MS_MAX))
    return end
  } catch (error) {
    end.close()
    throw error
  }
}

/**
 * The keys of both directions (RFC 5869): of the offering side's frames, and of the connecting side's. A stranger who reads or changes
 * the blob and the reply learns no key, as he has not the shared one. Within a host no stranger reads them, and no shared key is needed.
 */
function keysOf(
  sharedKey: Buffer | undefined,
  blob: Uint8Array,
  reply: Uint8Array,
): readonly [FrameKey, FrameKey] {
  return keysFrom(hkdfSync('sha256', sharedKey ?? NO_KEY, Buffer.concat([blob, reply]), KEY_LABEL, KEYS_SIZE))
}
