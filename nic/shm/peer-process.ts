/**
 * The process at the other end, for one-sided access to it. Only where both sides have asked for ZCopy, and only for processes
 * of our own effective user: who may do this can already read and write each other.
 *
 * A pid is only a number, and a program may become another one by execve(2). So the program that is there at the handshake
 * is held by its memory: `/proc/PID/mem` stays that of the program for which it was opened, and can be read no more once
 * that program has exited or has become another one. The pidfd of the peer (SO_PEERPIDFD) shows that what was opened was the
 * peer's. Between the check and the copy some microseconds remain, in which the peer may exit and its pid be given away.
 */
import { closeSync, openSync, readFileSync, statSync } from 'node:fs'
import { SO_PEERPIDFD, SOL_SOCKET } from '../posix/constants.ts'
import type { Libc } from '../posix/libc.ts'
import { isOwnUser } from '../posix/own-user.ts'
import type { Credentials } from '../posix/unix-socket.ts'
import { readProcess } from './process-memory.ts'

/** Above every user's memory: to read there fails for every living program, and touches no page of it. */
const NOWHERE = 0x7fff_ffff_ffff_f000n
const NOTHING_LEFT = 0

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

  /** The program that was there at the handshake still is. */
  get isThere(): boolean {
    return this.#libc.pread(this.#memory, byte, 1, NOWHERE) !== NOTHING_LEFT
  }

  close(): void {
    closeSync(this.#memory)
  }
}

/** The process at the other end of `connection`, or the reason why its memory is left alone. Reads none of it. */
export function openPeerProcess(
  libc: Libc,
  connection: number,
  { pid, uid }: Credentials,
): PeerProcess | string {
  if (pid <= 0) return 'the peer lives in another pid namespace'
  if (!isOwnUser(uid)) return `the peer is user ${uid}, not ${process.geteuid?.()} as we are`
  if (!canReadOwn(libc)) return 'the kernel refuses process_vm_readv, a seccomp filter perhaps'
  const pidfd = peerDescriptor(libc, connection)
  if (pidfd < 0) return 'the kernel does not give the pidfd of a peer (Linux 6.5 does)'
  try {
    const memory = openSync(`/proc/${pid}/mem`, 'r')
    // Looked at afterwards: while its pidfd still has that pid, nobody else can have had it when the memory was opened.
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

/** As `/proc` counts pids, which may be mounted from another pid namespace; -1 once it has exited. */
function pidOf(pidfd: number): number {
  const [, pid] = /^Pid:\s*(-?\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${pidfd}`, 'latin1')) ?? []
  return Number(pid ?? -1)
}
