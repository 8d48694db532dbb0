/** One connection of the connection manager, from its first event to its end. */
import { systemError } from '../posix/libc.ts'
import {
  PARAMETERS_INITIATOR,
  PARAMETERS_PRIVATE_DATA,
  PARAMETERS_PRIVATE_LENGTH,
  PARAMETERS_QP_NUMBER,
  PARAMETERS_RESPONDER,
  PARAMETERS_SIZE,
  READS_AT_ONCE,
} from './manager-layout.ts'
import type { ManagerLibrary } from './manager-library.ts'
import type { Pointer, VerbsLibrary } from './verbs-library.ts'

/** Time-out for each of the two steps before the call. */
const RESOLVE_MS = 2000

/** The owner of the queue pair. None of these may call users, or throw. */
export interface WayUser {
  /** The call was accepted: the queue pair can send. */
  handleWayOpen(): void
  /** The connection was never made. */
  handleWayFailed(reason: string): void
  /** The connection existed, and has ended. */
  handleWayClosed(): void
}

/** The connection manager, as far as its connections use it. */
interface WayManager {
  readonly rdmacm: ManagerLibrary
  readonly verbs: VerbsLibrary
  /** The connection's id is gone, or its nonce is void. */
  forget(way: Way, nonce: Buffer, id: Pointer | undefined): void
}

export class Way {
  /** The kernel is connecting: destroying the queue pair or the id would wait for the answer. */
  isCalling = false
  readonly #manager: WayManager
  readonly #nonce: Buffer
  readonly #number: number
  readonly #user: WayUser
  #id: Pointer | undefined
  /** The user has enough data of the peer to accept it. */
  #isAccepting = false

  /** `number` is the queue pair's number. */
  constructor(manager: WayManager, nonce: Buffer, number: number, user: WayUser) {
    this.#manager = manager
    this.#nonce = Buffer.from(nonce)
    this.#number = number
    this.#user = user
  }

  /** Calls from `own` to `peer`. */
  call(id: Pointer, own: Buffer, peer: Buffer): void {
    this.#id = id
    if (this.#manager.rdmacm.rdma_resolve_addr(id, own, peer, RESOLVE_MS) !== 0)
      this.#fail('rdma_resolve_addr')
  }

  /** Accepts now, or when the peer calls. */
  accept(): void {
    this.#isAccepting = true
    if (this.#id === undefined) return
    if (this.#manager.rdmacm.rdma_accept(this.#id, this.#parameters(0)) !== 0) this.#fail('rdma_accept')
  }

  /** The queue pair is destroyed, or was never connected. */
  close(): void {
    this.#manager.forget(this, this.#nonce, this.#id)
    if (this.#id !== undefined) this.#manager.rdmacm.rdma_destroy_id(this.#id)
    this.#id = undefined
  }

  handleRequest(id: Pointer): void {
    this.#id = id
    if (this.#isAccepting) this.accept()
  }

  handleAddress(): void {
    const { rdmacm } = this.#manager
    if (rdmacm.rdma_resolve_route(this.#id as Pointer, RESOLVE_MS) !== 0) this.#fail('rdma_resolve_route')
  }

  handleRoute(): void {
    const parameters = this.#parameters(this.#nonce.length)
    this.isCalling = true
    if (this.#manager.rdmacm.rdma_connect(this.#id as Pointer, parameters) === 0) return
    this.isCalling = false
    this.#fail('rdma_connect')
  }

  handleEstablished(): void {
    if (!this.isCalling) return
    this.isCalling = false
    this.#user.handleWayOpen()
  }

  handleFailure(reason: string): void {
    this.isCalling = false
    this.#user.handleWayFailed(`the connection manager says of the peer: ${reason}`)
  }

  handleDisconnected(): void {
    this.#user.handleWayClosed()
  }

  #parameters(nonceLength: number): Buffer {
    const parameters = Buffer.alloc(PARAMETERS_SIZE)
    const { libc } = this.#manager.verbs
    if (nonceLength > 0) parameters.writeBigUInt64LE(libc.address(this.#nonce), PARAMETERS_PRIVATE_DATA)
    parameters.writeUInt8(nonceLength, PARAMETERS_PRIVATE_LENGTH)
    parameters.writeUInt8(READS_AT_ONCE, PARAMETERS_RESPONDER)
    parameters.writeUInt8(READS_AT_ONCE, PARAMETERS_INITIATOR)
    parameters.writeUInt32LE(this.#number, PARAMETERS_QP_NUMBER)
    return parameters
  }

  #fail(call: string): void {
    this.#user.handleWayFailed(systemError(this.#manager.verbs.libc, call).message)
  }
}
