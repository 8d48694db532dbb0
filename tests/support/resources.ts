import { readdirSync, readFileSync } from 'node:fs'

/** Open descriptors of this process; the one that lists them is not counted. */
export function descriptorCount(): number {
  return readdirSync('/proc/self/fd').length - 1
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
