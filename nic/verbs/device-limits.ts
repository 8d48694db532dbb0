/** How deep a shared queue of receives the device allows. */
import { NicError } from '../errors.ts'
import { nodeGuidOf, portCountOf } from './device-choice.ts'
import {
  DEVICE_GUID,
  DEVICE_MAX_CQE,
  DEVICE_MAX_SRQ,
  DEVICE_MAX_SRQ_WR,
  DEVICE_PORT_COUNT,
  DEVICE_SIZE,
  GUID_SIZE,
} from './library-layout.ts'
import { RECEIVES_AT_ONCE } from './receive-chain.ts'
import type { Pointer, VerbsLibrary } from './verbs-library.ts'

/** Enough for every peer that sockets have, with the smallest grants to half of them. */
export const SHARED_RECEIVES_MAX = 32768
/** With fewer there is no shared queue. */
export const SHARED_RECEIVES_MIN = 1024
/** Share of the completions of a queue of the device. The others are for sends. */
const COMPLETIONS_PART = 4

/** In receives; 0 if the device has none, or too few. */
export function sharedDepthOf(library: VerbsLibrary, context: Pointer, device: string): number {
  const attributes = Buffer.alloc(DEVICE_SIZE)
  const errno = library.ibv_query_device(context, attributes)
  const isKnown =
    attributes.toString('hex', DEVICE_GUID, DEVICE_GUID + GUID_SIZE) === nodeGuidOf(device) &&
    attributes.readUInt8(DEVICE_PORT_COUNT) === portCountOf(device)
  if (errno !== 0 || !isKnown) {
    throw new NicError(
      'ERR_NIC_UNAVAILABLE',
      'libibverbs keeps struct ibv_device_attr in another way than is known here',
    )
  }
  if (attributes.readInt32LE(DEVICE_MAX_SRQ) <= 0) return 0
  const completions = attributes.readInt32LE(DEVICE_MAX_CQE) / COMPLETIONS_PART
  const most = Math.min(attributes.readInt32LE(DEVICE_MAX_SRQ_WR), completions, SHARED_RECEIVES_MAX)
  const depth = most - (most % RECEIVES_AT_ONCE)
  return depth < SHARED_RECEIVES_MIN ? 0 : depth
}
