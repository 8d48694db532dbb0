/**
 * Keeps file descriptors free for the program. The runtime opens descriptors of its own only while the program could
 * still open `DESCRIPTORS_LEFT` more: near RLIMIT_NOFILE (getrlimit(2)) the program's own `listen`, `connect` and
 * accepts come first, over TCP.
 */
import { undisturbed } from '../threads/undisturbed.ts'
import { EPOLL_CLOEXEC } from './constants.ts'
import { loadLibc } from './libc.ts'

export const DESCRIPTORS_LEFT = 16

/** Opens as many and closes them again: counting in /proc would need a descriptor, and /proc. */
export function hasFreeDescriptors(): boolean {
  const { libc } = loadLibc()
  if (libc === undefined) return true
  return undisturbed(() => {
    const opened: number[] = []
    while (opened.length < DESCRIPTORS_LEFT) {
      const descriptor = libc.epoll_create1(EPOLL_CLOEXEC)
      if (descriptor < 0) break
      opened.push(descriptor)
    }
    for (const descriptor of opened) libc.close(descriptor)
    return opened.length === DESCRIPTORS_LEFT
  })
}
