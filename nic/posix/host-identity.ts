/**
 * Where a process runs: 8 bytes for the kernel, 8 for the network namespace.
 *
 *   +0   hash of the boot id
 *   +8   hash of the boot id and the network namespace
 *
 * The hashes reveal neither. Two processes have the same 16 bytes if and only if they can reach each other's abstract
 * unix sockets. The same first half suggests one kernel; only a connection through the rendezvous folder proves it.
 */
import { createHash } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'

export const HOST_IDENTITY_SIZE = 16
const KERNEL_SIZE = 8

let identity: Buffer | undefined

export function hostIdentity(): Buffer {
  identity ??= findIdentity()
  return identity
}

/** Whether a process with that identity probably has the kernel of this one. */
export function isSameKernel(other: Buffer): boolean {
  return other.subarray(0, KERNEL_SIZE).equals(hostIdentity().subarray(0, KERNEL_SIZE))
}

function findIdentity(): Buffer {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const namespace = readlinkSync('/proc/self/ns/net')
  const kernel = createHash('sha256').update(boot).digest().subarray(0, KERNEL_SIZE)
  const reach = createHash('sha256').update(boot).update('\0').update(namespace).digest()
  return Buffer.concat([kernel, reach.subarray(0, HOST_IDENTITY_SIZE - KERNEL_SIZE)])
}
