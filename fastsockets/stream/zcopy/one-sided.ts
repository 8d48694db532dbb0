/** One-sided access to the peer's memory, as ZCopy uses it: one operation at a time, which is over when we return. */
import {
  type Access,
  type CompletionSink,
  NicError,
  OK,
  type Registration,
  type RemoteMemory,
  type Status,
  type VirtualInterface,
} from '../../../nic/index.ts'
import { OFFER_MAX } from '../stream-layout.ts'

export const MAY_BE_READ: Access = { remoteRead: true, remoteWrite: false, isRevocable: true }
export const MAY_BE_WRITTEN: Access = { remoteRead: false, remoteWrite: true, isRevocable: true }
const OURS_ALONE: Access = { remoteRead: false, remoteWrite: false }
/** Memory that the program gets, and we never see again. */
const OURS_ONCE: Access = { ...OURS_ALONE, isOnce: true }

const completion: CompletionSink & { status: Status | undefined } = {
  status: undefined,
  handleCompletion(_workId, status) {
    completion.status = status
  },
}

/** Undefined if the key is none, or if it does not give `length` bytes for that. */
export function importMemory(
  end: VirtualInterface,
  key: Uint8Array,
  length: number,
  use: keyof Access,
): RemoteMemory | undefined {
  if (length <= 0 || length > OFFER_MAX) return undefined
  try {
    const memory = end.importKey(key)
    return length <= memory.length && memory.access[use] ? memory : undefined
  } catch (error) {
    if (error instanceof NicError) return undefined
    throw error
  }
}

/** Undefined if the device can pin no more memory: then bytes are copied, as where nothing is registered. */
export function tryRegister(
  end: VirtualInterface,
  bytes: Uint8Array,
  access: Access,
): Registration | undefined {
  try {
    return end.register(bytes, access)
  } catch (error) {
    if (error instanceof NicError) return undefined
    throw error
  }
}

/** Fills `target` from the peer's memory; false if that cannot be read. `isOnce`: it was made for this. */
export function readRemote(
  end: VirtualInterface,
  target: Uint8Array,
  from: RemoteMemory,
  at: number,
  isOnce: boolean,
): boolean {
  const local = tryRegister(end, target, isOnce ? OURS_ONCE : OURS_ALONE)
  if (local === undefined) return false
  try {
    return completes(end, end.rdmaRead(local, 0, from, at, target.length, 0))
  } finally {
    local.deregister()
  }
}

/** Writes `source` to the beginning of the peer's memory; false if that cannot be written. */
export function writeRemote(end: VirtualInterface, source: Uint8Array, into: RemoteMemory): boolean {
  const local = tryRegister(end, source, OURS_ALONE)
  if (local === undefined) return false
  try {
    return completes(end, end.rdmaWrite(local, 0, into, 0, source.length, 0))
  } finally {
    local.deregister()
  }
}

function completes(end: VirtualInterface, posted: Status): boolean {
  if (posted !== OK) return false
  completion.status = undefined
  while (completion.status === undefined && end.state === 'open') end.pollCompletions(completion, 1)
  return completion.status === OK
}
