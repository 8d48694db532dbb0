/**
 * Both ends in one thread: the smallest complete driver, and the template for a new one. The rings lie in ordinary
 * memory, the doorbell is a callback, and one-sided access is a copy.
 */
import { AsyncResource } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { copyBytes, hasBytes } from '../copy.ts'
import { NicError } from '../errors.ts'
import type {
  Access,
  Capabilities,
  Driver,
  Offer,
  OfferOptions,
  Registration,
  RemoteMemory,
  VirtualInterface,
} from '../nic.ts'
import { clearInterval, clearTimeout, nextTick, setImmediate, setInterval, setTimeout } from '../real-time.ts'
import { RingConsumer } from '../ring/ring-consumer.ts'
import { RingInterface } from '../ring/ring-interface.ts'
import { frameMaxOf, isRingSize, RING_SIZE_DEFAULT, ringBytes } from '../ring/ring-layout.ts'
import { RingProducer } from '../ring/ring-producer.ts'
import { BROKEN, OK, type Status } from '../status.ts'

const TIMEOUT_MS_DEFAULT = 5000
const NEVER_MS = 2 ** 31 - 1
/** Runs the timer outside any asynchronous context, so that it keeps none alive. */
const scope = new AsyncResource('FASTSOCKETSLOOPBACK')

interface PendingOffer {
  readonly ringSize: number
  readonly resolve: (end: VirtualInterface) => void
  readonly forget: () => void
}

const offers = new Map<string, PendingOffer>()
const registrations = new Map<string, LoopbackRegistration>()

export const loopbackDriver: Driver = {
  name: 'loopback',
  reach: 'thread',
  availability: () => ({ usable: true }),
  offer,
  connect,
}

function offer(options: OfferOptions = {}): Offer {
  const ringSize = options.queueSize ?? RING_SIZE_DEFAULT
  if (!isRingSize(ringSize)) {
    throw new NicError('ERR_NIC_ARGUMENT', 'queueSize must be a power of two between 64 KiB and 1 GiB')
  }
  const id = randomUUID()
  let cancel = (): void => {}
  const accepted = new Promise<VirtualInterface>((resolve, reject) => {
    const forget = (): void => {
      clearTimeout(timer)
      offers.delete(id)
    }
    const fail = (message: string): void => {
      forget()
      reject(new NicError('ERR_NIC_CONNECT_FAILED', message))
    }
    const timer = setTimeout(
      () => fail('the offer was not taken up in time'),
      options.timeoutMs ?? TIMEOUT_MS_DEFAULT,
    )
    timer.unref()
    cancel = () => fail('the offer was cancelled')
    offers.set(id, { ringSize, resolve, forget })
  })
  accepted.catch(() => {})
  return { blob: Buffer.from(id), accepted, cancel }
}

async function connect(blob: Uint8Array): Promise<VirtualInterface> {
  const pending = offers.get(Buffer.from(blob).toString())
  if (pending === undefined)
    throw new NicError('ERR_NIC_BAD_ADDRESS', 'this is not the address of a loopback offer')
  pending.forget()
  const [offering, connecting] = openLoopbackPair(pending.ringSize)
  pending.resolve(offering)
  return connecting
}

/** Two connected interfaces at once, for a caller that holds both ends. */
export function openLoopbackPair(ringSize = RING_SIZE_DEFAULT): [VirtualInterface, VirtualInterface] {
  const memory = new ArrayBuffer(2 * ringBytes(ringSize))
  const first = new LoopbackInterface(memory, ringSize, true)
  const second = new LoopbackInterface(memory, ringSize, false)
  first.peer = second
  second.peer = first
  return [first, second]
}

/** True while a listener of any interface runs. */
let isListening = false

class LoopbackInterface extends RingInterface {
  readonly driver = 'loopback'
  peer: LoopbackInterface | undefined
  #listener: (() => void) | undefined
  /** There is no descriptor to keep the event loop alive; a timer that never fires does the same. */
  #keepAlive: NodeJS.Timeout | undefined

  constructor(memory: ArrayBuffer, ringSize: number, offering: boolean) {
    const second = ringBytes(ringSize)
    super(
      new RingProducer(memory, offering ? 0 : second, ringSize),
      new RingConsumer(memory, offering ? second : 0, ringSize),
      capabilitiesOf(ringSize),
    )
  }

  setDoorbell(listener: () => void): void {
    this.#listener = listener
  }

  ref(): void {
    if (this.state !== 'open') return
    this.#keepAlive ??= scope.runInAsyncScope(() => setInterval(() => {}, NEVER_MS))
    this.#keepAlive.ref()
  }

  unref(): void {
    this.#keepAlive?.unref()
  }

  register(bytes: Uint8Array, access: Access): Registration {
    return new LoopbackRegistration(bytes, access)
  }

  importKey(key: Uint8Array): RemoteMemory {
    const registration = registrations.get(Buffer.from(key).toString())
    if (registration === undefined)
      throw new NicError('ERR_NIC_ARGUMENT', 'this is not a key of loopback memory')
    return new LoopbackMemory(registration)
  }

  protected wakePeer(): void {
    this.peer?.answerDoorbell()
  }

  /**
   * Rings in a tick, before the event loop goes on: a server of this process accepts a connection before the immediates.
   * A listener that rings from within a listener uses an immediate, so that the loop goes on.
   */
  answerDoorbell(): void {
    const later = isListening ? setImmediate : nextTick
    later(this.#callListener)
  }

  readonly #callListener = (): void => {
    if (this.state === 'closed') return
    isListening = true
    try {
      this.#listener?.()
    } finally {
      isListening = false
    }
  }

  protected release(): void {
    clearInterval(this.#keepAlive)
    this.peer = undefined
  }

  protected readRemote(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
  ): Status {
    const memory = remote as LoopbackMemory
    if (!memory.isThere) return BROKEN
    copyBytes(memory.bytes, remoteOffset, local.bytes, localOffset, length)
    return OK
  }

  protected writeRemote(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
  ): Status {
    const memory = remote as LoopbackMemory
    if (!memory.isThere) return BROKEN
    copyBytes(local.bytes, localOffset, memory.bytes, remoteOffset, length)
    return OK
  }
}

class LoopbackRegistration implements Registration {
  readonly bytes: Uint8Array
  /** Of the bytes, which their owner may transfer or shrink. */
  readonly length: number
  readonly access: Access
  readonly key: Buffer
  isRevoked = false
  readonly #id = randomUUID()

  constructor(bytes: Uint8Array, access: Access) {
    this.bytes = bytes
    this.length = bytes.length
    this.access = access
    this.key = Buffer.from(this.#id)
    registrations.set(this.#id, this)
  }

  revoke(): boolean {
    if (this.access.isRevocable) this.isRevoked = true
    return this.isRevoked
  }

  deregister(): void {
    this.revoke()
    registrations.delete(this.#id)
  }
}

class LoopbackMemory implements RemoteMemory {
  readonly length: number
  readonly access: Access
  readonly bytes: Uint8Array
  readonly #registration: LoopbackRegistration

  constructor(registration: LoopbackRegistration) {
    this.#registration = registration
    this.length = registration.length
    this.access = registration.access
    this.bytes = registration.bytes
  }

  /** False if the memory was revoked, transferred or shrunk by its owner. */
  get isThere(): boolean {
    return !this.#registration.isRevoked && hasBytes(this.bytes, this.length)
  }
}

function capabilitiesOf(ringSize: number): Capabilities {
  return {
    ordered: true,
    reliable: true,
    frameMax: frameMaxOf(ringSize),
    inlineMax: frameMaxOf(ringSize),
    rdmaRead: true,
    rdmaWrite: true,
    rdmaReason: undefined,
    wakeFd: false,
  }
}
