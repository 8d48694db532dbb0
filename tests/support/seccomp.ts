/** Filters of system calls (seccomp(2)) for this process and its later programs, as a container runtime sets them. */
import koffi from 'koffi'

const PR_SET_NO_NEW_PRIVS = 38
const SET_MODE_FILTER = 1
/** The filter is for all threads of the process. */
const FLAG_TSYNC = 1
const SECCOMP: Partial<Record<NodeJS.Architecture, number>> = { x64: 317, arm64: 277 }

// struct seccomp_data: the number, the architecture, the instruction pointer of 8 bytes, six arguments of 8 bytes.
export const NUMBER = 0
export const ARCHITECTURE = 4
/** The low half of an argument. */
export const argument = (index: number): number => 16 + 8 * index

// Classic BPF (linux/bpf_common.h).
const LOAD_WORD = 0x20
const AND = 0x54
const JUMP_IF_EQUAL = 0x15
const RETURN = 0x06
const ALLOW = 0x7fff0000
const ERRNO = 0x00050000

/** struct sock_filter: code, the jumps if true and false, an operand. */
function instruction(code: number, jumpTrue: number, jumpFalse: number, operand: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt16LE(code, 0)
  bytes.writeUInt8(jumpTrue, 2)
  bytes.writeUInt8(jumpFalse, 3)
  bytes.writeUInt32LE(operand >>> 0, 4)
  return bytes
}

export const load = (offset: number): Buffer => instruction(LOAD_WORD, 0, 0, offset)
export const and = (mask: number): Buffer => instruction(AND, 0, 0, mask)
/** Skips the next `count` instructions unless what was loaded is `value`. */
export const unless = (value: number, count: number): Buffer => instruction(JUMP_IF_EQUAL, 0, count, value)
export const allow = (): Buffer => instruction(RETURN, 0, 0, ALLOW)
export const refuse = (errno: number): Buffer => instruction(RETURN, 0, 0, ERRNO | errno)

/** The error number of a system call whose first argument is -1 and that fails; 0 if it succeeds. */
export function errnoOf(call: number): number {
  const syscall = koffi
    .load('libc.so.6')
    .func('syscall', 'long', ['long', 'long', 'long', 'long', 'long', 'long'])
  return Number(syscall(call, -1, 0, 0, 0, 0)) < 0 ? koffi.errno() : 0
}

/** The kernel runs `filter` before each system call of this process from now on. */
export function applyFilter(filter: readonly Buffer[]): void {
  const program = Buffer.concat(filter)
  const Program = koffi.struct({ length: 'uint16', filter: 'void *' })
  const libc = koffi.load('libc.so.6')
  const setFlag = libc.func('prctl', 'int', ['int', 'ulong', 'ulong', 'ulong', 'ulong'])
  const seccomp = libc.func('syscall', 'long', ['long', 'ulong', 'ulong', koffi.pointer(Program)])
  if (setFlag(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) !== 0) throw new Error('PR_SET_NO_NEW_PRIVS is refused')
  const value = { length: filter.length, filter: program }
  const set = seccomp(SECCOMP[process.arch], SET_MODE_FILTER, FLAG_TSYNC, value)
  if (Number(set) !== 0) throw new Error(`seccomp(2) is refused: ${set}`)
}

const F_SETFD = 2

/** Another program in place of this one (execv(3)), which inherits the descriptor `kept`. Returns only by throwing. */
export function become(path: string, args: readonly string[], kept: number): never {
  const libc = koffi.load('libc.so.6')
  libc.func('int fcntl(int fd, int command, int argument)')(kept, F_SETFD, 0)
  libc.func('int execv(const char *path, const char **argv)')(path, [path, ...args, null])
  throw new Error(`${path} cannot be executed: ${koffi.errno()}`)
}
