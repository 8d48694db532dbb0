/**
 * Unmaps the address ranges of ended workers, closes their descriptors, and removes the files of their sockets.
 * `worker.terminate()` and the end of the process run no code in the worker, so the worker itself cannot do that. Each worker
 * notes what it has in the table of threads; when it has ended for any reason, the thread that started it cleans up.
 */

import { threadId } from 'node:worker_threads'
import { atomics } from '../atomics.ts'
import { loadLibc } from '../posix/libc.ts'
import { RANGES_MAX } from './thread-layout.ts'
import {
  descendants,
  onWorkerEnd,
  ownRow,
  rangeAddresses,
  rangeLengths,
  rangeOwners,
} from './thread-table.ts'

/** Length in a row whose address is a descriptor. */
const DESCRIPTOR = -1
/** The same for the inode of a socket's file in the rendezvous folder. */
const SOCKET_FILE = -2

/** By inodes. */
type RemoveFiles = (inodes: ReadonlySet<number>) => void

let removeFiles: RemoveFiles = () => {}

/** Notes a descriptor that this thread keeps until it ends or forgets it, and that no object of Node owns. */
export function noteDescriptor(fd: number): void {
  noteRange(BigInt(fd), DESCRIPTOR)
}

/** This thread is about to close a descriptor that it has noted. */
export function forgetDescriptor(fd: number): void {
  forget(fd, DESCRIPTOR)
}

/** Notes the file of a socket, which this thread removes unless it is stopped before. */
export function noteSocketFile(inode: bigint): void {
  noteRange(inode, SOCKET_FILE)
}

export function forgetSocketFile(inode: bigint): void {
  forget(Number(inode), SOCKET_FILE)
}

/** `remove` gets what workers have noted that have ended, or that are about to end with this process. */
export function onSocketFilesLeft(remove: RemoveFiles): void {
  removeFiles = remove
  process.once('worker', () => process.on('exit', () => removeFilesOf(descendants())))
}

function removeFilesOf(ids: readonly number[]): void {
  const inodes = new Set<number>()
  for (let row = 0; row < RANGES_MAX; row++)
    if (rangeLengths[row] === SOCKET_FILE && ids.includes(rangeOwners[row] as number))
      inodes.add(rangeAddresses[row] as number)
  if (inodes.size > 0) removeFiles(inodes)
}

function forget(address: number, length: number): void {
  if (ownRow < 0) return
  for (let row = 0; row < RANGES_MAX; row++) {
    if (rangeOwners[row] !== threadId || rangeLengths[row] !== length || rangeAddresses[row] !== address)
      continue
    rangeAddresses[row] = 0
    rangeLengths[row] = 0
    atomics.store(rangeOwners, row, 0)
    return
  }
}

/** Notes a range that this thread keeps until it ends. */
export function noteRange(address: bigint, length: number): void {
  if (ownRow < 0) return
  for (let row = 0; row < RANGES_MAX; row++) {
    if (atomics.compareExchange(rangeOwners, row, 0, threadId) !== 0) continue
    // In this order: a row without a length is none.
    rangeAddresses[row] = Number(address)
    rangeLengths[row] = length
    return
  }
}

onWorkerEnd(id => {
  removeFilesOf([id])
  for (let row = 0; row < RANGES_MAX; row++) {
    if (rangeOwners[row] === id) release(row)
  }
})

function release(row: number): void {
  const address = BigInt(rangeAddresses[row] as number)
  const length = rangeLengths[row] as number
  // Frees the row before it unmaps: this thread may be terminated in between. Its starter would then unmap the range a
  // second time, when the addresses may belong to another mapping.
  rangeAddresses[row] = 0
  rangeLengths[row] = 0
  atomics.store(rangeOwners, row, 0)
  if (length === DESCRIPTOR) loadLibc().libc?.close(Number(address))
  else if (length > 0 && address !== 0n) loadLibc().libc?.munmap(address, length)
}
