import { randomBytes as makeBytes } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'

const SOURCE = '/dev/urandom'

/**
 * As Node's `randomBytes`, without its asynchronous resource. If the program enables a hook after that resource was
 * made, the hook gets `destroy` without `init`.
 */
export function randomBytes(size: number): Buffer {
  const bytes = Buffer.alloc(size)
  return readSource(bytes) === size ? bytes : makeBytes(size)
}

/** Returns the number of bytes read; 0 if the file is missing or no descriptor is left. */
function readSource(into: Buffer): number {
  try {
    const fd = openSync(SOURCE, 'r')
    try {
      return readSync(fd, into)
    } finally {
      closeSync(fd)
    }
  } catch {
    return 0
  }
}
