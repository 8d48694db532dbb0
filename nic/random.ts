import { randomBytes as makeBytes } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'

const SOURCE = '/dev/urandom'

/**
 * As Node's `randomBytes`, without its asynchronous resource: a program whose hooks are younger than that would hear of the end of
 * what, to them, never began.
 */
export function randomBytes(size: number): Buffer {
  const bytes = Buffer.alloc(size)
  return readSource(bytes) === size ? bytes : makeBytes(size)
}

/** How much was read; 0 where there is no such file, or no descriptor for it. */
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
