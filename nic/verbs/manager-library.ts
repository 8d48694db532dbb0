/** librdmacm through koffi: the functions that are called, or the reason why they cannot be. */
import { loadKoffi } from '../posix/libc.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import type { Pointer } from './verbs-library.ts'

/** Functions without another note return 0, or -1 and errno. */
export interface ManagerLibrary {
  rdma_create_event_channel(): Pointer | null
  rdma_destroy_event_channel(channel: Pointer): void
  rdma_create_id(channel: Pointer, id: Uint8Array, own: Pointer | null, space: number): number
  rdma_destroy_id(id: Pointer): number
  rdma_bind_addr(id: Pointer, address: Uint8Array): number
  rdma_listen(id: Pointer, backlog: number): number
  rdma_resolve_addr(id: Pointer, source: Uint8Array, destination: Uint8Array, timeoutMs: number): number
  rdma_resolve_route(id: Pointer, timeoutMs: number): number
  rdma_connect(id: Pointer, parameters: Uint8Array): number
  rdma_accept(id: Pointer, parameters: Uint8Array): number
  rdma_get_cm_event(channel: Pointer, event: Uint8Array): number
  rdma_ack_cm_event(event: Pointer): number
}

const NAME = 'librdmacm.so.1'
const PROTOTYPES = [
  'void *rdma_create_event_channel()',
  'void rdma_destroy_event_channel(void *channel)',
  'int rdma_create_id(void *channel, void *id, void *own, int space)',
  'int rdma_destroy_id(void *id)',
  'int rdma_bind_addr(void *id, void *address)',
  'int rdma_listen(void *id, int backlog)',
  'int rdma_resolve_addr(void *id, void *source, void *destination, int timeout)',
  'int rdma_resolve_route(void *id, int timeout)',
  'int rdma_connect(void *id, void *parameters)',
  'int rdma_accept(void *id, void *parameters)',
  'int rdma_get_cm_event(void *channel, void *event)',
  'int rdma_ack_cm_event(void *event)',
]

let result: ManagerLibrary | string | undefined

/** A text says why the library cannot be used. */
export function loadManager(): ManagerLibrary | string {
  result ??= undisturbed(load)
  return result
}

function load(): ManagerLibrary | string {
  try {
    const native = loadKoffi().load(NAME)
    const functions = PROTOTYPES.map(prototype => {
      const name = /(\w+)\(/.exec(prototype)?.[1] as string
      return [name, native.func(prototype)] as const
    })
    return Object.fromEntries(functions) as unknown as ManagerLibrary
  } catch (error) {
    return `${NAME} cannot be used: ${(error as Error).message.split('\n')[0]}; install librdmacm1`
  }
}
