/**
 * The peer's process, for one-sided access to its memory. Used only if both sides asked for ZCopy and run as the same
 * effective user: such processes can read and write each other anyway.
 *
 * The kernel reuses pids, and a process may replace its program by execve(2). So the handshake opens `/proc/PID/mem`,
 * which refers to the memory of that program: reads return 0 once the program has exited or was replaced. The peer's
 * pidfd (SO_PEERPIDFD) proves that the opened memory was the peer's.
 *
 * A process that shares the memory (CLONE_VM) keeps it alive while the peer executes another program. So the handshake opens
 * `/proc/PID` too, which stays that process's: its owner, and the file that it runs, must be those of the handshake. Beside
 * such a process, a peer that executes the same file again as the same user is not noticed.
 *
 * Some microseconds remain between check and copy, in which the peer may exit and the kernel reuse its pid.
 */
import { closeSync, constants, openSync, readFileSync, readlinkSync } from 'node:fs'
import { AT_EMPTY_PATH, SO_PEERPIDFD, SOL_SOCKET, STATX_INO, STATX_UID } from '../posix/constants.ts'
import type { Libc } from '../posix/libc.ts'
import { isOwnUser } from '../posix/own-user.ts'
import type { Credentials } from '../posix/unix-socket.ts'
import { readProcess } from './process-memory.ts'

/** Above the memory of every program: a read there fails while the program lives, and touches none of its pages. */
const NOWHERE = 0x7fff_ffff_ffff_f000n
const NOTHING_LEFT = 0

// struct statx
const STATX_SIZE = 256
const AT_UID = 20
const AT_INODE = 32
const AT_DEVICE = 136
const FILE = 'exe'
const ELSEWHERE = 'the peer lives in another pid namespace'

const own = Buffer.alloc(8, 1)
const byte = Buffer.alloc(8)
const status = Buffer.alloc(STATX_SIZE)
let isOwnReadable: boolean | undefined

export class PeerProcess {
  readonly pid: number
  readonly #libc: Libc
  readonly #uid: number
  readonly #memory: number
  readonly #folder: number
  /** Inode and device of the file that it runs. */
  readonly #file: Buffer

  /** Opens the folder of the process in /proc, and its memory. Throws if that may not be. */
  constructor(libc: Libc, { pid, uid }: Credentials) {
    this.#libc = libc
    this.pid = pid
    this.#uid = uid
    this.#folder = openSync(`/proc/${pid}`, constants.O_RDONLY | constants.O_DIRECTORY)
    try {
      this.#memory = openSync(`/proc/self/fd/${this.#folder}/mem`, 'r')
    } catch (error) {
      closeSync(this.#folder)
      throw error
    }
    this.#file = this.#readFile() ? Buffer.from(status) : Buffer.alloc(0)
  }

  /** True while the process runs the program of the handshake. */
  get isThere(): boolean {
    return (
      this.#libc.pread(this.#memory, byte, 1, NOWHERE) !== NOTHING_LEFT &&
      this.#isOwned() &&
      this.#runsSameFile()
    )
  }

  close(): void {
    closeSync(this.#memory)
    closeSync(this.#folder)
  }

  #isOwned(): boolean {
    const { statx } = this.#libc
    return (
      statx(this.#folder, '', AT_EMPTY_PATH, STATX_UID, status) === 0 &&
      status.readUInt32LE(AT_UID) === this.#uid
    )
  }

  #runsSameFile(): boolean {
    const file = this.#file
    return (
      this.#readFile() &&
      file.length > 0 &&
      status.compare(file, AT_INODE, AT_INODE + 8, AT_INODE, AT_INODE + 8) === 0 &&
      status.compare(file, AT_DEVICE, AT_DEVICE + 8, AT_DEVICE, AT_DEVICE + 8) === 0
    )
  }

  #readFile(): boolean {
    return this.#libc.statx(this.#folder, FILE, 0, STATX_INO, status) === 0
  }
}

/** The peer's process of `connection`, or the reason why its memory is not used. Reads none of it. */
export function openPeerProcess(
  libc: Libc,
  connection: number,
  credentials: Credentials,
): PeerProcess | string {
  const { pid, uid } = credentials
  if (pid <= 0) return ELSEWHERE
  if (!isOwnUser(uid)) return `the peer is user ${uid}, not ${process.geteuid?.()} as we are`
  if (!canReadOwn(libc)) return 'the kernel refuses process_vm_readv, a seccomp filter perhaps'
  const pidfd = peerDescriptor(libc, connection)
  if (pidfd < 0) return 'the kernel does not give the pidfd of a peer (Linux 6.5 does)'
  try {
    // From outside a namespace its processes have pids, which they do not know themselves.
    if (readlinkSync(`/proc/${pid}/ns/pid`) !== readlinkSync('/proc/self/ns/pid')) return ELSEWHERE
    const opened = new PeerProcess(libc, credentials)
    // Checked afterwards: if the pidfd still has that pid, no other process had it when the memory was opened.
    if (opened.isThere && pidOf(pidfd) === pid) return opened
    opened.close()
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
