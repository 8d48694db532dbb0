/** Options that clients and servers share. */
import type { BinaryReadOptions, BinaryWriteOptions } from '@bufbuild/protobuf'
import type { Interceptor } from '@connectrpc/connect'
import { MESSAGE_BYTES_MAX } from '../rpc-layout.ts'

export interface SharedOptions {
  readonly interceptors?: Interceptor[]
  readonly binaryOptions?: Partial<BinaryReadOptions & BinaryWriteOptions>
  /** Longest messages; `MESSAGE_BYTES_MAX` by default, and at most. */
  readonly readMaxBytes?: number
  readonly writeMaxBytes?: number
}

/** Bytes that a frame may have beside its message. */
const HEAD_BYTES_MAX = 1024 * 1024

export function limitsOf({ readMaxBytes, writeMaxBytes }: SharedOptions): {
  readMaxBytes: number
  writeMaxBytes: number
} {
  const most = MESSAGE_BYTES_MAX - HEAD_BYTES_MAX
  return {
    readMaxBytes: Math.min(readMaxBytes ?? most, most),
    writeMaxBytes: Math.min(writeMaxBytes ?? most, most),
  }
}

/** The name by which the directory knows a method. */
export function signatureOf(method: {
  readonly parent: { readonly typeName: string }
  readonly name: string
  readonly methodKind: string
}): string {
  return `/${method.parent.typeName}/${method.name} ${method.methodKind}`
}

/** Services of Connect share one name in the directory of an endpoint, which no service of a program has: it has a space. */
export const SERVICE_NAME = 'connect router'
