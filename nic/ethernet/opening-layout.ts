/**
 * A program without CAP_NET_RAW asks the helper `fastsockets nic open` for a packet socket, over a unix stream socket.
 * Little-endian.
 *
 *   REQUEST  program -> helper  +0 magic 'FSNQ'   +4 version (u32)   +8 ID of the interface, 8 bytes
 *   ANSWER   helper -> program  +0 magic 'FSNA'   +4 0, and the descriptor comes along; else an errno (u32)
 *
 * The helper has attached the filter of that ID and has locked it: the program cannot receive the frames of others.
 */
import { ID_SIZE } from './frame-layout.ts'

const VERSION = 1
const REQUEST_MAGIC = 0x514e_5346
const ANSWER_MAGIC = 0x414e_5346
const AT_SECOND = 4
const AT_ID = 8
export const REQUEST_SIZE = 16
export const ANSWER_SIZE = 8

export function encodeRequest(id: Uint8Array): Buffer {
  const bytes = Buffer.alloc(REQUEST_SIZE)
  bytes.writeUInt32LE(REQUEST_MAGIC, 0)
  bytes.writeUInt32LE(VERSION, AT_SECOND)
  bytes.set(id, AT_ID)
  return bytes
}

/** The ID; undefined if the bytes are no request. */
export function decodeRequest(bytes: Buffer): Buffer | undefined {
  if (bytes.length !== REQUEST_SIZE || bytes.readUInt32LE(0) !== REQUEST_MAGIC) return undefined
  return bytes.readUInt32LE(AT_SECOND) === VERSION ? bytes.subarray(AT_ID, AT_ID + ID_SIZE) : undefined
}

export function encodeAnswer(errno: number): Buffer {
  const bytes = Buffer.alloc(ANSWER_SIZE)
  bytes.writeUInt32LE(ANSWER_MAGIC, 0)
  bytes.writeUInt32LE(errno, AT_SECOND)
  return bytes
}

/** The errno, or 0; undefined if the bytes are no answer. */
export function decodeAnswer(bytes: Buffer): number | undefined {
  if (bytes.length !== ANSWER_SIZE || bytes.readUInt32LE(0) !== ANSWER_MAGIC) return undefined
  return bytes.readUInt32LE(AT_SECOND)
}
