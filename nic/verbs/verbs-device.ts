/** The RDMA device as the parts of a connection use it; verbs-adapter.ts implements it. */
import type { NicError } from '../errors.ts'
import type { ConnectionManager } from './connection-manager.ts'
import type { VerbsCounters } from './counters.ts'
import type { Port } from './device-choice.ts'
import type { DeviceFunctions, Pointer, VerbsLibrary } from './verbs-library.ts'

export interface MemoryRegion {
  readonly pointer: Pointer
  readonly lkey: number
  readonly rkey: number
  readonly length: number
}

export interface VerbsDevice {
  readonly verbs: VerbsLibrary
  readonly port: Port
  /** Present for iWARP devices: makes the connections. Some operations differ then. */
  readonly manager: ConnectionManager | undefined
  readonly functions: DeviceFunctions
  readonly pd: Pointer
  readonly cq: Pointer
  readonly counters: VerbsCounters
  /** Pinned for the rings of all connections. */
  slabBytes: number
  /** Throws once the device can no longer be used. */
  assertUsable(): void
  register(address: Pointer, length: number, access: number): MemoryRegion
  deregister(region: MemoryRegion): void
  /** The error of a failed post. */
  postError(syscall: string, said: number): NicError
  /** Reserves room for so many completions; throws if there is none. Negative: releases room. */
  promise(completions: number): void
}
