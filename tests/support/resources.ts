import { readdirSync, readFileSync } from 'node:fs'

/** Open descriptors of this process; the one that lists them is not counted. */
export function descriptorCount(): number {
  return readdirSync('/proc/self/fd').length - 1
}

/** Mappings of memfds in this process. */
export function memfdMappingCount(): number {
  return readFileSync('/proc/self/maps', 'utf8')
    .split('\n')
    .filter(line => line.includes('/memfd:')).length
}
