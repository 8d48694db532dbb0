/** Registered memory of a simulated host, as its owner has it and as a peer names it. */
import { hasBytes } from '../copy.ts'
import { NicError } from '../errors.ts'
import type { Access, Registration, RemoteMemory } from '../nic.ts'
import type { SimulatedHost } from './simulated-host.ts'

const KIB64 = 64 * 1024
const PAGE = 4096
const NO_BYTES = new Uint8Array(0)

/** All registered memory of one network, by key. */
export class MemoryTable {
  readonly #newKey: () => Buffer
  readonly #registrations = new Map<string, SimulatedRegistration>()

  constructor(newKey: () => Buffer) {
    this.#newKey = newKey
  }

  register(host: SimulatedHost, bytes: Uint8Array, access: Access): Registration {
    const { registerUs, registerUsPerPage } = host.hardware
    host.charge(registerUs + registerUsPerPage * Math.ceil(Math.max(0, bytes.length - KIB64) / PAGE))
    const key = this.#newKey()
    const id = key.toString('hex')
    const registration = new SimulatedRegistration(host, bytes, access, key)
    this.#registrations.set(id, registration)
    return registration
  }

  importKey(key: Uint8Array): RemoteMemory {
    const registration = this.#registrations.get(Buffer.from(key).toString('hex'))
    if (registration === undefined)
      throw new NicError('ERR_NIC_ARGUMENT', 'this is not a key of simulated memory')
    return new SimulatedMemory(registration)
  }
}

class SimulatedRegistration implements Registration {
  bytes: Uint8Array
  /** Of the bytes, which their owner may transfer or shrink. */
  readonly length: number
  readonly access: Access
  readonly key: Buffer
  readonly host: SimulatedHost
  isRevoked = false

  constructor(host: SimulatedHost, bytes: Uint8Array, access: Access, key: Buffer) {
    this.bytes = bytes
    this.length = bytes.length
    this.access = access
    this.key = key
    this.host = host
  }

  revoke(): boolean {
    if (this.access.isRevocable) this.isRevoked = true
    return this.isRevoked
  }

  deregister(): void {
    this.isRevoked = true
    // The key stays valid: a peer learns by its next access that the memory is gone.
    this.bytes = NO_BYTES
  }
}

export class SimulatedMemory implements RemoteMemory {
  readonly length: number
  readonly access: Access
  readonly registration: SimulatedRegistration

  constructor(registration: SimulatedRegistration) {
    this.registration = registration
    this.length = registration.length
    this.access = registration.access
  }

  /** False if the memory was deregistered, transferred or shrunk by its owner, or if its host is gone. */
  get isThere(): boolean {
    const { isRevoked, bytes, host } = this.registration
    return !isRevoked && host.state !== 'dead' && !host.isCutOff && hasBytes(bytes, this.length)
  }
}
