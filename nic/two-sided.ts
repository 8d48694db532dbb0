/** What drivers without one-sided access share: they move frames, and neither side reaches the memory of the other. */
import { NicError } from './errors.ts'
import type { Access, Capabilities, CompletionSink, Registration, RemoteMemory } from './nic.ts'
import { PlainRegistration } from './plain-registration.ts'
import { type Status, UNSUPPORTED } from './status.ts'

/** Of a driver that copies frames of any length up to `frameMax`, and whose descriptor is the doorbell. */
export function twoSidedCapabilities(frameMax: number, rdmaReason: string) {
  return { frameMax, inlineMax: frameMax, rdmaRead: false, rdmaWrite: false, rdmaReason, wakeFd: true }
}

export abstract class TwoSidedInterface {
  abstract readonly capabilities: Capabilities

  register(bytes: Uint8Array, access: Access): Registration {
    if (!access.remoteRead && !access.remoteWrite) return new PlainRegistration(bytes, access)
    throw new NicError('ERR_NIC_UNAVAILABLE', this.capabilities.rdmaReason as string)
  }

  importKey(_key: Uint8Array): RemoteMemory {
    throw new NicError('ERR_NIC_ARGUMENT', 'this is not a key of this driver, which has none')
  }

  rdmaRead(): Status {
    return UNSUPPORTED
  }

  rdmaWrite(): Status {
    return UNSUPPORTED
  }

  pollCompletions(_sink: CompletionSink, _limit: number): number {
    return 0
  }
}
