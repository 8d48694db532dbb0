/**
 * The peer's process, for one-sided access to its memory. Used only if both sides asked for ZCopy and run as the same
 * effective user: such processes can read and write each other anyway.
 *
 * The kernel reuses pids, and a process may replace its program by execve(2). So the handshake opens `/proc/PID/mem`,
 * which refers to the memory of that program: reads return 0 once the program has exited or was replaced. The peer's
 * pidfd (SO_PEERPIDFD) proves that the opened memory was the peer's. Some microseconds remain between check and copy,
 * in which the peer may exit and the kernel reuse its pid.
 */
import { closeSync, openSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { SO_PEERPIDFD, SOL_SOCKET } from '../posix/constants.ts'
import type { Libc } from '../posix/libc.ts'
import { isOwnUser } from '../posix/own-user.ts'
import type { Credentials } from '../posix/unix-socket.ts'
import { readProcess } from './process-memory.ts'

/** Above the memory of every program: a read there fails while the program lives, and touches none of its pages. */
const NOWHERE = 0x7fff_ffff_ffff_f000n
const NOTHING_LEFT = 0
const ELSEWHERE = 'the peer lives in another pid namespace'

const own = Buffer.alloc(8, 1)
const byte = Buffer.alloc(8)
let isOwnReadable: boolean | undefined

export class PeerProcess {
  readonly pid: number
  readonly #libc: Libc
  readonly #memory: number

  constructor(libc: Libc, pid: number, memory: number) {
    this.#libc = libc
    this.pid = pid
    this.#memory = memory
  }

  /** True while the process runs the program of the handshake. */
  get isThere(): boolean {
    return this.#libc.pread(this.#memory, byte, 1, NOWHERE) !== NOTHING_LEFT
  }

  close(): void {
    closeSync(this.#memory)
  }
}

/** The peer's process of `connection`, or the reason why its memory is not used. Reads none of it. */
export function openPeerProcess(
  libc: Libc,
  connection: number,
  { pid, uid }: Credentials,
): PeerProcess | string {
  if (pid <= 0) return ELSEWHERE
  if (!isOwnUser(uid)) return `the peer is user ${uid}, not ${process.geteuid?.()} as we are`
  if (!canReadOwn(libc)) return 'the kernel refuses process_vm_readv, a seccomp filter perhaps'
  const pidfd = peerDescriptor(libc, connection)
  if (pidfd < 0) return 'the kernel does not give the pidfd of a peer (Linux 6.5 does)'
  try {
    // From outside a namespace its processes have pids, which they do not know themselves.
    if (readlinkSync(`/proc/${pid}/ns/pid`) !== readlinkSync('/proc/self/ns/pid')) return ELSEWHERE
    const memory = openSync(`/proc/${pid}/mem`, 'r')
    // Checked after `openSync`: if the pidfd still has that pid, no other process had it when the memory was opened.
    if (statSync(`/proc/${pid}`).uid === uid && pidOf(pidfd) === pid)
      return new PeerProcess(libc, pid, memory)
    closeSync(memory)
    return 'the process that connected is gone, or has other rights by now'
  } catch (error) {
    return `the peer's memory may not be opened: ${(error as Error).message}`
  } finally {
    libc.close(pidfd)
  }
}

function canReadOwn(libc: Libc): boolean {
  isOwnReadable ??= readProcess(libc, process.pid, libc.address(byte), libc.address(own), 1) === 1
  return isOwnReadable
}

function peerDescriptor(libc: Libc, connection: number): number {
  const value = Buffer.alloc(4)
  const length = Buffer.alloc(4)
  length.writeInt32LE(value.length)
  return libc.getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, value, length) < 0 ? -1 : value.readInt32LE()
}

/** The pid in the pid namespace of `/proc`, which may be another one than ours; -1 once the process has exited. */
function pidOf(pidfd: number): number {
  const [, pid] = /^Pid:\s*(-?\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${pidfd}`, 'latin1')) ?? []
  return Number(pid ?? -1)
}
