import type { Access, Registration } from './nic.ts'

/** The key of memory that the peer cannot reach. */
const NO_KEY = new Uint8Array(0)

/** Keeps registered memory from being collected until `deregister`. */
const registered = new Set<PlainRegistration>()

/** Memory that only this side uses, or that the peer maps. The peer may keep it mapped, so it cannot be revoked. */
export class PlainRegistration implements Registration {
  readonly bytes: Uint8Array
  readonly access: Access
  readonly key: Uint8Array

  constructor(bytes: Uint8Array, access: Access, key: Uint8Array = NO_KEY) {
    this.bytes = bytes
    this.access = access
    this.key = key
    registered.add(this)
  }

  revoke(): boolean {
    return false
  }

  deregister(): void {
    registered.delete(this)
  }
}
