import { createHash } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'

export const HOST_IDENTITY_SIZE = 16

let identity: Buffer | undefined

/**
 * A hash of boot id and network namespace, which reveals neither. Two processes have the same identity if and only if
 * they can reach each other's abstract unix sockets.
 */
export function hostIdentity(): Buffer {
  identity ??= createHash('sha256')
    .update(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())
    .update('\0')
    .update(readlinkSync('/proc/self/ns/net'))
    .digest()
    .subarray(0, HOST_IDENTITY_SIZE)
  return identity
}
