/** A preload: from now on the kernel refuses memfd_create(2) to this process with EPERM, as seccomp profiles of containers do. */
import koffi from 'koffi'

const PR_SET_SECCOMP = 22
const PR_SET_NO_NEW_PRIVS = 38
const SECCOMP_MODE_FILTER = 2
const NUMBERS: Partial<Record<NodeJS.Architecture, number>> = { x64: 319, arm64: 279 }

/** struct sock_filter: code, the jumps if true and false, an operand. */
function instruction(code: number, jumpTrue: number, jumpFalse: number, operand: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt16LE(code, 0)
  bytes.writeUInt8(jumpTrue, 2)
  bytes.writeUInt8(jumpFalse, 3)
  bytes.writeUInt32LE(operand, 4)
  return bytes
}

const LOAD_WORD = 0x20
const JUMP_IF_EQUAL = 0x15
const RETURN = 0x06
const ALLOW = 0x7fff0000
const REFUSE_EPERM = 0x00050001

const program = Buffer.concat([
  // The first word of struct seccomp_data is the number of the call.
  instruction(LOAD_WORD, 0, 0, 0),
  instruction(JUMP_IF_EQUAL, 0, 1, NUMBERS[process.arch] ?? 0),
  instruction(RETURN, 0, 0, REFUSE_EPERM),
  instruction(RETURN, 0, 0, ALLOW),
])
const Filter = koffi.struct({ length: 'uint16', filter: 'void *' })
const libc = koffi.load('libc.so.6')
const setFlag = libc.func('prctl', 'int', ['int', 'ulong', 'ulong', 'ulong', 'ulong'])
const setFilter = libc.func('prctl', 'int', ['int', 'ulong', koffi.pointer(Filter)])
if (setFlag(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) !== 0) throw new Error('PR_SET_NO_NEW_PRIVS is refused')
if (setFilter(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, { length: program.length / 8, filter: program }) !== 0)
  throw new Error('PR_SET_SECCOMP is refused')
