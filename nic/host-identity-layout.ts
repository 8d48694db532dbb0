/**
 * Where a process runs: 8 bytes for the kernel, 8 for the network namespace.
 *
 *   +0   hash of the boot id
 *   +8   hash of the boot id and the network namespace
 *
 * The hashes reveal neither. Two processes have the same 16 bytes if and only if they can reach each other's abstract
 * unix sockets. The same first half suggests one kernel; only a connection through the rendezvous folder proves it.
 */
export const HOST_IDENTITY_SIZE = 16
/** Of those, the bytes for the kernel. */
export const KERNEL_IDENTITY_SIZE = 8
