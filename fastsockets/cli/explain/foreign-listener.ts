/** Programs that no option relinks, since they are not Node. */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { withoutMapping } from '../../host/addresses.ts'
import { kernelSockets } from '../../host/kernel-sockets.ts'
import { processesOf } from '../../host/socket-owners.ts'
import { commandOf } from '../../status/kernel-peers.ts'

/** Every Node exports it for addons (node_api.h), so it stands in the executable's table of symbols, and in that of a copy. */
const NODE_SYMBOL = Buffer.from('\0napi_module_register\0')
/** Distributions may put Node into a library of this name. */
const NODE_LIBRARY = '/libnode.'
const READ_AT_ONCE = 1024 * 1024

/** The program that listens at an address of this host, if it is not Node; undefined also if it may not be inspected. */
export function foreignListener(address: string, port: number): string | undefined {
  const places = [withoutMapping(address), '0.0.0.0', '::']
  const inodes = new Map<number, true>()
  try {
    for (const family of [4, 6] as const)
      for (const { isListening, local, localPort, inode } of kernelSockets(family))
        if (isListening && localPort === port && places.includes(withoutMapping(local)))
          inodes.set(inode, true)
    for (const [, pid] of processesOf(inodes)) if (!isNode(pid)) return `${commandOf(pid)} (process ${pid})`
  } catch {
    // Without /proc, or if the process has just ended, nothing is known.
  }
  return undefined
}

function isNode(pid: string): boolean {
  return (
    readFileSync(`/proc/${pid}/maps`, 'latin1').includes(NODE_LIBRARY) ||
    contains(`/proc/${pid}/exe`, NODE_SYMBOL)
  )
}

function contains(path: string, bytes: Buffer): boolean {
  const overlap = bytes.length - 1
  const buffer = Buffer.alloc(overlap + READ_AT_ONCE)
  const fd = openSync(path, 'r')
  try {
    for (;;) {
      const size = readSync(fd, buffer, overlap, READ_AT_ONCE, null)
      if (size === 0) return false
      if (buffer.subarray(0, overlap + size).includes(bytes)) return true
      buffer.copyWithin(0, size, size + overlap)
    }
  } finally {
    closeSync(fd)
  }
}
