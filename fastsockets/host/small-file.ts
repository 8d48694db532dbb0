import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants

/**
 * The text of a small file of this user's; undefined if it is none: a pipe, on which we would wait for ever, a device without an
 * end, a link, or somebody else's. Throws what opening it throws.
 */
export function readSmallFile(path: string, sizeMax: number): string | undefined {
  const fd = openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
  try {
    const stat = fstatSync(fd)
    if (!stat.isFile() || stat.uid !== process.geteuid?.() || stat.size > sizeMax) return undefined
    const bytes = Buffer.alloc(stat.size)
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, 0))
  } finally {
    closeSync(fd)
  }
}
