/** libibverbs through koffi: the functions that are called, or the reason why they cannot be. */
import { type Libc, loadKoffi, loadLibc, type PollHandle } from '../posix/libc.ts'
import { undisturbed } from '../threads/undisturbed.ts'

/** A pointer, as a value of koffi. */
export type Pointer = bigint

/** The data path, whose functions belong to a device: their pointers are in its context. */
export interface DeviceFunctions {
  pollCq(cq: Pointer, count: number, completions: Pointer): number
  requestNotify(cq: Pointer, solicitedOnly: number): number
  /** 0, or an errno. */
  postSend(qp: Pointer, request: Pointer, bad: Pointer): number
  postReceive(qp: Pointer, request: Pointer, bad: Pointer): number
  postSharedReceive(srq: Pointer, request: Pointer, bad: Pointer): number
}

export interface VerbsLibrary {
  readonly libc: Libc
  ibv_get_device_list(count: Uint8Array): Pointer | null
  ibv_free_device_list(list: Pointer): void
  ibv_get_device_name(device: Pointer): string
  ibv_open_device(device: Pointer): Pointer | null
  ibv_close_device(context: Pointer): number
  ibv_query_device(context: Pointer, attributes: Uint8Array): number
  ibv_query_port(context: Pointer, port: number, attributes: Uint8Array): number
  ibv_query_gid(context: Pointer, port: number, index: number, gid: Uint8Array): number
  ibv_alloc_pd(context: Pointer): Pointer | null
  ibv_dealloc_pd(pd: Pointer): number
  ibv_reg_mr(pd: Pointer, address: Pointer, length: number, access: number): Pointer | null
  ibv_dereg_mr(mr: Pointer): number
  ibv_create_comp_channel(context: Pointer): Pointer | null
  ibv_destroy_comp_channel(channel: Pointer): number
  ibv_create_cq(
    context: Pointer,
    count: number,
    own: Pointer | null,
    channel: Pointer,
    vector: number,
  ): Pointer | null
  ibv_resize_cq(cq: Pointer, count: number): number
  ibv_destroy_cq(cq: Pointer): number
  ibv_create_srq(pd: Pointer, attributes: Uint8Array): Pointer | null
  ibv_destroy_srq(srq: Pointer): number
  ibv_create_qp(pd: Pointer, attributes: Uint8Array): Pointer | null
  ibv_modify_qp(qp: Pointer, attributes: Uint8Array, mask: number): number
  ibv_destroy_qp(qp: Pointer): number
  ibv_get_cq_event(channel: Pointer, cq: Uint8Array, own: Uint8Array): number
  ibv_ack_cq_events(cq: Pointer, count: number): void
  ibv_get_async_event(context: Pointer, event: Uint8Array): number
  ibv_ack_async_event(event: Uint8Array): void
  ibv_is_fork_initialized(): number
  /** Fields of the library's structures. */
  readPointer(at: Pointer, offset: number): Pointer
  readUint32(at: Pointer, offset: number): number
  deviceFunctions(
    poll: Pointer,
    notify: Pointer,
    send: Pointer,
    receive: Pointer,
    sharedReceive: Pointer,
  ): DeviceFunctions
  /** Calls `listener` from the event loop while the descriptor is readable. Does not keep the loop alive until `ref`. */
  watch(fd: number, listener: () => void): PollHandle
}

export type LibraryResult =
  | { readonly library: VerbsLibrary; readonly code?: undefined; readonly reason?: undefined }
  | { readonly library?: undefined; readonly code: string; readonly reason: string }

const NAME = 'libibverbs.so.1'
const PROTOTYPES = {
  ibv_get_device_list: 'void *ibv_get_device_list(void *count)',
  ibv_free_device_list: 'void ibv_free_device_list(void *list)',
  ibv_get_device_name: 'const char *ibv_get_device_name(void *device)',
  ibv_open_device: 'void *ibv_open_device(void *device)',
  ibv_close_device: 'int ibv_close_device(void *context)',
  ibv_query_device: 'int ibv_query_device(void *context, void *attributes)',
  ibv_query_port: 'int ibv_query_port(void *context, uint8_t port, void *attributes)',
  ibv_query_gid: 'int ibv_query_gid(void *context, uint8_t port, int index, void *gid)',
  ibv_alloc_pd: 'void *ibv_alloc_pd(void *context)',
  ibv_dealloc_pd: 'int ibv_dealloc_pd(void *pd)',
  ibv_reg_mr: 'void *ibv_reg_mr(void *pd, void *address, size_t length, int access)',
  ibv_dereg_mr: 'int ibv_dereg_mr(void *mr)',
  ibv_create_comp_channel: 'void *ibv_create_comp_channel(void *context)',
  ibv_destroy_comp_channel: 'int ibv_destroy_comp_channel(void *channel)',
  ibv_create_cq: 'void *ibv_create_cq(void *context, int count, void *own, void *channel, int vector)',
  ibv_resize_cq: 'int ibv_resize_cq(void *cq, int count)',
  ibv_destroy_cq: 'int ibv_destroy_cq(void *cq)',
  ibv_create_srq: 'void *ibv_create_srq(void *pd, void *attributes)',
  ibv_destroy_srq: 'int ibv_destroy_srq(void *srq)',
  ibv_create_qp: 'void *ibv_create_qp(void *pd, void *attributes)',
  ibv_modify_qp: 'int ibv_modify_qp(void *qp, void *attributes, int mask)',
  ibv_destroy_qp: 'int ibv_destroy_qp(void *qp)',
  ibv_get_cq_event: 'int ibv_get_cq_event(void *channel, void *cq, void *own)',
  ibv_ack_cq_events: 'void ibv_ack_cq_events(void *cq, unsigned int count)',
  ibv_get_async_event: 'int ibv_get_async_event(void *context, void *event)',
  ibv_is_fork_initialized: 'int ibv_is_fork_initialized()',
  ibv_ack_async_event: 'void ibv_ack_async_event(void *event)',
} as const

/** Answers of ibv_is_fork_initialized: the kernel copies pinned pages for a child by itself. */
export const FORK_UNNEEDED = 2

let result: LibraryResult | undefined

export function loadVerbs(): LibraryResult {
  result ??= undisturbed(load)
  return result
}

function load(): LibraryResult {
  const { libc, code, reason } = loadLibc()
  if (libc === undefined) return { code, reason }
  if (process.arch !== 'x64' && process.arch !== 'arm64') {
    return { code: 'PLATFORM', reason: `the layouts of libibverbs are not known for ${process.arch}` }
  }
  try {
    return bind(libc)
  } catch (error) {
    const text = (error as Error).message.split('\n')[0]
    return { code: 'VERBS_LIBRARY', reason: `${NAME} cannot be used: ${text}; install rdma-core` }
  }
}

function bind(libc: Libc): LibraryResult {
  const koffi = loadKoffi()
  const native = koffi.load(NAME)
  const functions = Object.fromEntries(
    Object.entries(PROTOTYPES).map(([name, prototype]) => [name, native.func(prototype)]),
  )
  const poll = koffi.proto('int FastSocketsPollCq(void *cq, int count, void *completions)')
  const notify = koffi.proto('int FastSocketsNotify(void *cq, int solicited)')
  const post = koffi.proto('int FastSocketsPost(void *queue, void *request, void *bad)')
  const pointer = (value: unknown): Pointer => BigInt((value ?? 0) as bigint)
  const asFunction = (at: Pointer, type: unknown): unknown => koffi.decode(at, type as never)
  return {
    library: {
      ...(functions as unknown as VerbsLibrary),
      libc,
      readPointer: (at, offset) => pointer(koffi.decode(at, offset, 'void *')),
      readUint32: (at, offset) => koffi.decode(at, offset, 'uint32_t') as number,
      deviceFunctions: (pollAt, notifyAt, sendAt, receiveAt, sharedReceiveAt) => ({
        pollCq: asFunction(pollAt, poll) as DeviceFunctions['pollCq'],
        requestNotify: asFunction(notifyAt, notify) as DeviceFunctions['requestNotify'],
        postSend: asFunction(sendAt, post) as DeviceFunctions['postSend'],
        postReceive: asFunction(receiveAt, post) as DeviceFunctions['postReceive'],
        postSharedReceive: asFunction(sharedReceiveAt, post) as DeviceFunctions['postSharedReceive'],
      }),
      watch: libc.watch,
    },
  }
}
