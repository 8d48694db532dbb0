import { readdirSync, readFileSync } from 'node:fs'

const PAGE_BYTES = 4096

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

/** Memory of this process that is in the machine's, shared memory included. */
export function residentBytes(): number {
  const pages = Number(readFileSync('/proc/self/statm', 'utf8').split(' ')[1])
  return pages * PAGE_BYTES
}
