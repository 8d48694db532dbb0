/** The identity of this process's kernel and network namespace (host-identity-layout.ts). */
import { createHash } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { HOST_IDENTITY_SIZE, KERNEL_IDENTITY_SIZE as KERNEL_SIZE } from '../host-identity-layout.ts'

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
