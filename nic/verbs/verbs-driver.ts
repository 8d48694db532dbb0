/**
 * Connects two hosts with RDMA devices. Each end must know the other's queue pair: the blob of the offer goes to the
 * connecting side, and its reply, which the caller transports, to the offering side. The offering side then sends the
 * first word over the new connection: when it is acknowledged, both know that the connection works.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { NicError } from '../errors.ts'
import type { Availability, ConnectOptions, Offer, OfferOptions, VirtualInterface } from '../nic.ts'
import { clearTimeout, setTimeout } from '../real-time.ts'
import {
  BLOB_MAGIC,
  decodeAddress,
  type EndAddress,
  encodeAddress,
  LINK_IWARP,
  NONCE_SIZE,
  REPLY_MAGIC,
} from './address-layout.ts'
import type { VerbsCounters } from './counters.ts'
import { isRingSize, RING_SIZE_DEFAULT } from './frame-layout.ts'
import { LINK_ETHERNET } from './library-layout.ts'
import { openAdapter, openedAdapter, requireAdapter } from './open-adapter.ts'
import { ringSizeAfter } from './ring-size.ts'
import { VerbsAdapter } from './verbs-adapter.ts'
import { VerbsInterface } from './verbs-interface.ts'

const TIMEOUT_MS_DEFAULT = 5000
const PSN_LIMIT = 2 ** 24
/** Largest rings that an offer can make the connecting side pin; the offer may come from a stranger. */
const RING_CONNECTED_MAX = 16 * RING_SIZE_DEFAULT

interface PendingOffer {
  answer(reply: Uint8Array): void
}

/** By nonce: for a connecting side in this process. */
const pending = new Map<string, PendingOffer>()

export function availability(): Availability {
  const found = openAdapter()
  if (!(found instanceof VerbsAdapter)) return { usable: false, ...found }
  const { lostReason } = found
  return lostReason === undefined
    ? { usable: true }
    : { usable: false, code: 'VERBS_LOST', reason: lostReason }
}

/** Counters of the driver in this process; undefined where it cannot be used. */
export function verbsCounters(): VerbsCounters | undefined {
  const found = openAdapter()
  return found instanceof VerbsAdapter ? found.counters : undefined
}

export interface VerbsUse {
  readonly counters: Readonly<VerbsCounters>
  /** Bytes pinned now: for the rings of connections, and for registered or cached memory. */
  readonly pinned: { readonly rings: number; readonly registrations: number }
}

/** Counters and pinned memory; undefined while this process has not used the driver. Opens nothing. */
export function verbsUse(): VerbsUse | undefined {
  const adapter = openedAdapter()
  if (adapter === undefined) return undefined
  const { counters, slabBytes, cache } = adapter
  return { counters, pinned: { rings: slabBytes, registrations: cache.pinnedBytes } }
}

/** The device in one line, for people; undefined if there is none. */
export function describeDevice(): string | undefined {
  const found = openAdapter()
  if (!(found instanceof VerbsAdapter)) return undefined
  const { device, number, gidIndex, gid, mtu, linkLayer } = found.port
  if (linkLayer === LINK_IWARP)
    return `${device} port ${number}, iWARP at ${addressText(gid)}, MTU ${128 << mtu}`
  return `${device} port ${number}, GID ${gidIndex} (${gid.toString('hex')}), MTU ${128 << mtu}`
}

/**
 * The device's own address in its network, as text, if it has one: of the GID of an RoCE device, or of an iWARP device.
 */
export function deviceAddress(): string | undefined {
  const found = openAdapter()
  if (!(found instanceof VerbsAdapter)) return undefined
  const { gid, linkLayer } = found.port
  return linkLayer === LINK_ETHERNET || linkLayer === LINK_IWARP ? addressText(gid) : undefined
}

function addressText(gid: Buffer): string {
  if (gid.readUInt16BE(10) === 0xffff && gid.subarray(0, 10).every(byte => byte === 0))
    return gid.subarray(12).join('.')
  const groups = Array.from({ length: 8 }, (_, i) => gid.readUInt16BE(2 * i).toString(16)).join(':')
  return new URL(`http://[${groups}]`).hostname.slice(1, -1)
}

export function offer(options: OfferOptions = {}): Offer {
  const ringSize = options.queueSize ?? ringSizeAfter(requireAdapter().slabBytes)
  if (!isRingSize(ringSize)) {
    throw new NicError('ERR_NIC_ARGUMENT', 'queueSize must be a power of two between 64 KiB and 1 GiB')
  }
  const end = openEnd(ringSize)
  const nonce = randomBytes(NONCE_SIZE)
  const own = expectAnswer(end, nonce)
  const key = nonce.toString('hex')
  let cancel = (): void => {}
  let answer = (_reply: Uint8Array): void => {}
  const accepted = new Promise<VirtualInterface>((resolve, reject) => {
    const settle = (error?: NicError): void => {
      clearTimeout(timer)
      pending.delete(key)
      if (error === undefined) return resolve(end)
      end.close()
      reject(error)
    }
    const fail = (message: string): void => settle(new NicError('ERR_NIC_CONNECT_FAILED', message))
    const timer = setTimeout(
      () => fail('the offer was not taken up in time'),
      options.timeoutMs ?? TIMEOUT_MS_DEFAULT,
    )
    timer.unref()
    cancel = () => {
      if (end.state === 'open') fail('the offer was cancelled')
    }
    answer = reply => {
      if (!pending.delete(key)) return
      const peer = decodeAddress(REPLY_MAGIC, reply)
      if (peer === undefined || !peer.nonce.equals(nonce) || !areAlike(own, peer))
        return fail('the connecting side answered something else')
      try {
        end.connect(own, peer, true, settle)
      } catch (error) {
        settle(error as NicError)
      }
    }
    pending.set(key, { answer })
  })
  void accepted.then(
    () => {
      cancel = () => {}
    },
    () => {},
  )
  return {
    blob: encodeAddress(BLOB_MAGIC, own),
    accepted,
    cancel: () => cancel(),
    answer: reply => answer(reply),
  }
}

function expectAnswer(end: VerbsInterface, nonce: Buffer): EndAddress {
  try {
    end.expect(nonce)
    return end.addressFor(nonce, randomInt(PSN_LIMIT))
  } catch (error) {
    end.close()
    throw error
  }
}

export async function connect(blob: Uint8Array, options: ConnectOptions = {}): Promise<VirtualInterface> {
  const peer = decodeAddress(BLOB_MAGIC, blob)
  if (peer === undefined)
    throw new NicError('ERR_NIC_BAD_ADDRESS', 'this is not the address of an offer over RDMA')
  const ringSizeMax = Math.min(RING_CONNECTED_MAX, options.queueSizeMax ?? RING_CONNECTED_MAX)
  if (peer.ringSize > ringSizeMax)
    throw new NicError(
      'ERR_NIC_BAD_ADDRESS',
      `a ring of ${peer.ringSize} bytes is offered; ${ringSizeMax} is the most`,
    )
  const reply = options.reply ?? pending.get(peer.nonce.toString('hex'))?.answer
  if (reply === undefined)
    throw new NicError(
      'ERR_NIC_CONNECT_FAILED',
      'the offer is of another process, and the caller gave no way to carry the reply',
    )
  const end = openEnd(peer.ringSize)
  try {
    await handshake(end, peer, reply, options.timeoutMs ?? TIMEOUT_MS_DEFAULT)
    return end
  } catch (error) {
    end.close()
    throw error
  }
}

function handshake(
  end: VerbsInterface,
  peer: EndAddress,
  reply: (bytes: Uint8Array) => void,
  timeoutMs: number,
): Promise<void> {
  const own = end.addressFor(peer.nonce, randomInt(PSN_LIMIT))
  if (!areAlike(own, peer)) {
    throw new NicError('ERR_NIC_CONNECT_FAILED', 'the two ends are not on the same kind of network')
  }
  return new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new NicError('ERR_NIC_CONNECT_FAILED', 'the offering side sent nothing over RDMA in time'))
    }, timeoutMs)
    end.connect(own, peer, false, error => {
      clearTimeout(timer)
      if (error === undefined) resolve()
      else reject(error)
    })
    reply(encodeAddress(REPLY_MAGIC, own))
  })
}

function areAlike(one: EndAddress, other: EndAddress): boolean {
  return one.linkLayer === other.linkLayer && one.ringSize === other.ringSize
}

function openEnd(ringSize: number): VerbsInterface {
  const adapter = requireAdapter()
  return new VerbsInterface(adapter, adapter.cache, ringSize)
}
