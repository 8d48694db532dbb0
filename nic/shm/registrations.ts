import type { Access, Registration } from '../nic.ts'

/** A key of nothing: what nobody else reaches needs none. */
const NO_KEY = new Uint8Array(0)

/** Registered memory stays referenced until `deregister`, whoever else has forgotten it. */
const registered = new Set<PlainRegistration>()

/** Memory that is only this side's, or that the peer maps: then it stays mapped there for as long as the peer likes. */
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
