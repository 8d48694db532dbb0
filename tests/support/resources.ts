import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Open descriptors of this process; the one that lists them is not counted. */
export function descriptorCount(): number {
  return readdirSync('/proc/self/fd').length - 1
}

/** What each open descriptor of this process leads to. */
export function descriptorTargets(): Map<string, string> {
  const targets = new Map<string, string>()
  for (const fd of readdirSync('/proc/self/fd')) {
    try {
      targets.set(fd, readlinkSync(`/proc/self/fd/${fd}`))
    } catch {
      // The one that has listed them.
    }
  }
  return targets
}

/** Mappings of memfds in this process, without the status page of the thread that asks. */
export function memfdMappingCount(): number {
  const lines = readFileSync('/proc/self/maps', 'utf8').split('\n')
  const hasPage = lines.some(line => line.includes('/memfd:fastsockets-status'))
  return lines.filter(line => line.includes('/memfd:')).length - (hasPage ? 1 : 0)
}

/** Memory of this process that is in the machine's, shared memory included, and what of it is shared memory. */
export function residentBytes(): { readonly bytes: number; readonly sharedBytes: number } {
  const status = readFileSync('/proc/self/status', 'utf8')
  const kibibytesOf = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1])
  return { bytes: kibibytesOf('VmRSS') * 1024, sharedBytes: kibibytesOf('RssShmem') * 1024 }
}
