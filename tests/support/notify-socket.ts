/** The service manager's end of sd_notify(3): a datagram socket, which Node has not. */
import { join } from 'node:path'
import type { Test } from 'tap'
import { MSG_DONTWAIT } from '../../nic/posix/constants.ts'
import { requireLibc } from '../../nic/posix/libc.ts'
import { temporaryFolder } from './named.ts'
import { bindUnix, SOCK_DGRAM } from './unix-address.ts'

const DATAGRAM_MAX = 4096
/** Nothing of Node's says when a datagram has come. */
const LOOK_EVERY_MS = 20

export class NotifySocket {
  readonly path: string
  /** What has arrived, one datagram each. */
  readonly messages: string[] = []

  constructor(t: Test) {
    this.path = join(temporaryFolder(t), 'notify')
    const libc = requireLibc()
    const fd = bindUnix(this.path, SOCK_DGRAM)
    const bytes = Buffer.alloc(DATAGRAM_MAX)
    const look = setInterval(() => {
      for (let n = 1; n > 0; ) {
        n = libc.recv(fd, bytes, DATAGRAM_MAX, MSG_DONTWAIT)
        if (n > 0) this.messages.push(bytes.toString('utf8', 0, n))
      }
    }, LOOK_EVERY_MS)
    t.teardown(() => {
      clearInterval(look)
      libc.close(fd)
    })
  }

  /** Whether a line like this was in any of them. */
  has(line: string): boolean {
    return this.messages.some(message => message.split('\n').includes(line))
  }
}
