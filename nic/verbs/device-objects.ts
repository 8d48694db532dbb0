/** The objects that are made of a device once, for all connections: all of them, or none. */
import { NicError } from '../errors.ts'
import { systemError } from '../posix/libc.ts'
import { assertDescriptor, setNonBlocking } from './descriptors.ts'
import { CHANNEL_FD, CQ_CHANNEL } from './library-layout.ts'
import type { Pointer, VerbsLibrary } from './verbs-library.ts'

export interface DeviceObjects {
  /** Protection domain. */
  readonly pd: Pointer
  /** Completion channel, and its descriptor, which outlives the device's. */
  readonly channel: Pointer
  readonly channelFd: number
  /** Completion queue. */
  readonly cq: Pointer
}

export function makeObjects(library: VerbsLibrary, context: Pointer, completions: number): DeviceObjects {
  const made: (() => unknown)[] = []
  const keep = (pointer: Pointer | null, call: string, destroy: (made: Pointer) => number): Pointer => {
    if (pointer === null) throw systemError(library.libc, call)
    const kept = BigInt(pointer)
    made.unshift(() => destroy(kept))
    return kept
  }
  try {
    const pd = keep(library.ibv_alloc_pd(context), 'ibv_alloc_pd', library.ibv_dealloc_pd)
    const channel = keep(
      library.ibv_create_comp_channel(context),
      'ibv_create_comp_channel',
      library.ibv_destroy_comp_channel,
    )
    const cq = keep(
      library.ibv_create_cq(context, completions, null, channel, 0),
      'ibv_create_cq',
      library.ibv_destroy_cq,
    )
    const channelFd = library.readUint32(channel, CHANNEL_FD)
    assertDescriptor(channelFd, /infinibandevent|uverbs/, 'ibv_comp_channel')
    if (library.readPointer(cq, CQ_CHANNEL) !== channel) {
      throw new NicError(
        'ERR_NIC_UNAVAILABLE',
        'libibverbs keeps struct ibv_cq in another way than is known here',
      )
    }
    setNonBlocking(library.libc, channelFd)
    return { pd, channel, channelFd, cq }
  } catch (error) {
    for (const destroy of made) destroy()
    throw error
  }
}

export function destroyObjects(library: VerbsLibrary, { pd, channel, cq }: DeviceObjects): void {
  library.ibv_destroy_cq(cq)
  library.ibv_destroy_comp_channel(channel)
  library.ibv_dealloc_pd(pd)
}
