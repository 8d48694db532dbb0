/** Programs that no option relinks, since they are not Node. */
import { readlinkSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { withoutMapping } from '../../host/addresses.ts'
import { kernelSockets } from '../../host/kernel-sockets.ts'
import { processesOf } from '../../host/socket-owners.ts'
import { commandOf } from '../../status/kernel-peers.ts'

/** A smaller executable does not contain Node; one that links to its library is called `node`. */
const NODE_SIZE_MIN = 30 * 1024 * 1024

/** The program that listens at an address of this host, if it is not Node; undefined also if it may not be inspected. */
export function foreignListener(address: string, port: number): string | undefined {
  const places = [withoutMapping(address), '0.0.0.0', '::']
  const inodes = new Map<number, true>()
  try {
    for (const family of [4, 6] as const)
      for (const { isListening, local, localPort, inode } of kernelSockets(family))
        if (isListening && localPort === port && places.includes(withoutMapping(local)))
          inodes.set(inode, true)
    for (const [, pid] of processesOf(inodes))
      if (!mayBeNode(pid)) return `${commandOf(pid)} (process ${pid})`
  } catch {
    // Without /proc, or if the process has just ended, nothing is known.
  }
  return undefined
}

function mayBeNode(pid: string): boolean {
  const executable = `/proc/${pid}/exe`
  return statSync(executable).size >= NODE_SIZE_MIN || basename(readlinkSync(executable)).startsWith('node')
}
