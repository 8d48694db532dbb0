/** One queue pair: its life from creation to connection, and the calls that post work to it. */
import { NicError } from '../errors.ts'
import { systemError } from '../posix/libc.ts'
import type { EndAddress } from './address-layout.ts'
import {
  ACCESS_REMOTE_READ,
  ACCESS_REMOTE_WRITE,
  AH_GID,
  AH_GID_INDEX,
  AH_HOP_LIMIT,
  AH_IS_GLOBAL,
  AH_LID,
  AH_PORT,
  ATTR_ACCESS,
  ATTR_AH,
  ATTR_DEST_QP,
  ATTR_MAX_DEST_RD_ATOMIC,
  ATTR_MAX_RD_ATOMIC,
  ATTR_MIN_RNR_TIMER,
  ATTR_PATH_MTU,
  ATTR_PORT,
  ATTR_RETRY_COUNT,
  ATTR_RNR_RETRY,
  ATTR_RQ_PSN,
  ATTR_SIZE,
  ATTR_SQ_PSN,
  ATTR_STATE,
  ATTR_TIMEOUT,
  INIT_INLINE,
  INIT_RECV_COUNT,
  INIT_RECV_CQ,
  INIT_RECV_SGES,
  INIT_SEND_COUNT,
  INIT_SEND_CQ,
  INIT_SEND_SGES,
  INIT_SIZE,
  INIT_SRQ,
  INIT_TYPE,
  LINK_ETHERNET,
  MASK_INIT,
  MASK_INIT_MANAGED,
  MASK_RTR,
  MASK_RTS,
  MASK_STATE,
  QP_NUMBER,
  QP_PD,
  QP_SEND_CQ,
  QP_SRQ,
  QP_TYPE,
  STATE_ERROR,
  STATE_INIT,
  STATE_RTR,
  STATE_RTS,
  TYPE_RC,
} from './library-layout.ts'
import { READS_AT_ONCE } from './manager-layout.ts'
import type { ReceiveChain } from './receive-chain.ts'
import type { SendWork } from './send-work.ts'
import type { VerbsDevice } from './verbs-device.ts'
import type { Pointer } from './verbs-library.ts'

/** Requested; the device may grant less or more. */
const INLINE_WANTED = 128
/** iWARP devices refuse larger requests, and some have exactly this limit. */
const INLINE_WANTED_IWARP = 48
/**
 * 4.096 us * 2^14 = 67 ms for an acknowledgement, and six retries: after half a second the peer counts as lost. With
 * seven, the kernel's software device retries for ever.
 */
const ACK_TIMEOUT = 14
const RETRY_COUNT = 6
/** Retries without limit while the receiver has no receive; credits keep that from happening. */
const RNR_RETRY_FOREVER = 7
/** 0.64 ms. */
const RNR_TIMER = 12
const HOP_LIMIT = 64
/** In place of an own receive queue, for a shared one. */
const NO_QUEUE = 0n

export class QueuePair {
  readonly number: number
  readonly inlineMax: number
  readonly #adapter: VerbsDevice
  readonly #pointer: Pointer
  #isOpen = true
  #isMute = false

  /** With so many receives of its own, or those of a shared queue. */
  constructor(adapter: VerbsDevice, sendCount: number, receiveCount: number, sharedQueue = NO_QUEUE) {
    const { verbs, pd, cq } = adapter
    this.#adapter = adapter
    const attributes = Buffer.alloc(INIT_SIZE)
    attributes.writeBigUInt64LE(cq, INIT_SEND_CQ)
    attributes.writeBigUInt64LE(cq, INIT_RECV_CQ)
    attributes.writeBigUInt64LE(sharedQueue, INIT_SRQ)
    attributes.writeUInt32LE(sendCount, INIT_SEND_COUNT)
    attributes.writeUInt32LE(receiveCount, INIT_RECV_COUNT)
    attributes.writeUInt32LE(1, INIT_SEND_SGES)
    attributes.writeUInt32LE(1, INIT_RECV_SGES)
    const inline = adapter.manager === undefined ? INLINE_WANTED : INLINE_WANTED_IWARP
    attributes.writeUInt32LE(inline, INIT_INLINE)
    attributes.writeInt32LE(TYPE_RC, INIT_TYPE)
    const pointer = verbs.ibv_create_qp(pd, attributes)
    if (pointer === null) throw systemError(verbs.libc, 'ibv_create_qp')
    this.#pointer = pointer
    if (
      verbs.readPointer(pointer, QP_PD) !== BigInt(pd) ||
      verbs.readPointer(pointer, QP_SEND_CQ) !== BigInt(cq) ||
      verbs.readPointer(pointer, QP_SRQ) !== sharedQueue ||
      verbs.readUint32(pointer, QP_TYPE) !== TYPE_RC
    ) {
      verbs.ibv_destroy_qp(pointer)
      throw new NicError(
        'ERR_NIC_UNAVAILABLE',
        'libibverbs keeps struct ibv_qp in another way than is known here',
      )
    }
    this.number = verbs.readUint32(pointer, QP_NUMBER)
    this.inlineMax = attributes.readUInt32LE(INIT_INLINE)
    this.#enterInit()
  }

  /** Makes the queue pair ready to receive and to send. A connection manager needs no call. */
  connect(own: EndAddress, peer: EndAddress): void {
    const { port } = this.#adapter
    const receive = Buffer.alloc(ATTR_SIZE)
    receive.writeInt32LE(STATE_RTR, ATTR_STATE)
    receive.writeInt32LE(Math.min(own.mtu, peer.mtu), ATTR_PATH_MTU)
    receive.writeUInt32LE(peer.psn, ATTR_RQ_PSN)
    receive.writeUInt32LE(peer.number, ATTR_DEST_QP)
    receive.writeUInt8(READS_AT_ONCE, ATTR_MAX_DEST_RD_ATOMIC)
    receive.writeUInt8(RNR_TIMER, ATTR_MIN_RNR_TIMER)
    receive.writeUInt8(port.number, ATTR_AH + AH_PORT)
    receive.writeUInt16LE(peer.lid, ATTR_AH + AH_LID)
    if (port.linkLayer === LINK_ETHERNET) {
      peer.gid.copy(receive, ATTR_AH + AH_GID)
      receive.writeUInt8(port.gidIndex, ATTR_AH + AH_GID_INDEX)
      receive.writeUInt8(HOP_LIMIT, ATTR_AH + AH_HOP_LIMIT)
      receive.writeUInt8(1, ATTR_AH + AH_IS_GLOBAL)
    }
    this.#modify(receive, MASK_RTR, 'the way to the peer')
    const send = Buffer.alloc(ATTR_SIZE)
    send.writeInt32LE(STATE_RTS, ATTR_STATE)
    send.writeUInt32LE(own.psn, ATTR_SQ_PSN)
    send.writeUInt8(READS_AT_ONCE, ATTR_MAX_RD_ATOMIC)
    send.writeUInt8(ACK_TIMEOUT, ATTR_TIMEOUT)
    send.writeUInt8(RETRY_COUNT, ATTR_RETRY_COUNT)
    send.writeUInt8(RNR_RETRY_FOREVER, ATTR_RNR_RETRY)
    this.#modify(send, MASK_RTS, 'sending')
  }

  /** Returns 0 or an errno; a destroyed queue pair accepts no work. */
  post(work: SendWork): number {
    if (!this.#isOpen || this.#isMute) return 0
    const { counters, functions } = this.#adapter
    counters.postSends++
    return functions.postSend(this.#pointer, work.pointer, work.badPointer)
  }

  /** The peer is gone: posted work has no effect. */
  mute(): void {
    this.#isMute = true
  }

  /** Posts receives of its own. Returns as `post` does; after an errno their number is unknown. */
  postReceives(chain: ReceiveChain): number {
    if (!this.#isOpen || this.#isMute) return 0
    const { counters, functions } = this.#adapter
    counters.postReceives++
    return functions.postReceive(this.#pointer, chain.pointer, chain.badPointer)
  }

  /** The error of a failed post. */
  postError(syscall: 'ibv_post_send' | 'ibv_post_recv', errno: number): NicError {
    return this.#adapter.postError(syscall, errno)
  }

  /** Stops the queue pair; posted work completes as flushed. */
  stop(): void {
    if (!this.#isOpen) return
    const attributes = Buffer.alloc(ATTR_SIZE)
    attributes.writeInt32LE(STATE_ERROR, ATTR_STATE)
    this.#adapter.verbs.ibv_modify_qp(this.#pointer, attributes, MASK_STATE)
  }

  destroy(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#adapter.verbs.ibv_destroy_qp(this.#pointer)
  }

  #enterInit(): void {
    const attributes = Buffer.alloc(ATTR_SIZE)
    attributes.writeInt32LE(STATE_INIT, ATTR_STATE)
    attributes.writeUInt32LE(ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE, ATTR_ACCESS)
    attributes.writeUInt8(this.#adapter.port.number, ATTR_PORT)
    try {
      const mask = this.#adapter.manager === undefined ? MASK_INIT : MASK_INIT_MANAGED
      this.#modify(attributes, mask, 'its port')
    } catch (error) {
      this.destroy()
      throw error
    }
  }

  #modify(attributes: Buffer, mask: number, what: string): void {
    const errno = this.#adapter.verbs.ibv_modify_qp(this.#pointer, attributes, mask)
    if (errno === 0) return
    const name = this.#adapter.verbs.libc.errnoName(errno)
    throw new NicError('ERR_NIC_CONNECT_FAILED', `the queue pair refuses ${what}: ibv_modify_qp ${name}`, {
      syscall: 'ibv_modify_qp',
      errno,
    })
  }
}
