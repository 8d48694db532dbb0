/** What the preload asks about each socket that is written to. */
import { targetPath } from '../host/unix-targets.ts'

/** True over TCP, and over a unix path; false for terminals and pipes, as standard output is. */
export function isConnection(socket: object): boolean {
  const { _handle: handle, server } = socket as { _handle?: object | null; server?: object | null }
  const name = handle?.constructor?.name
  if (name === 'Pipe') return Boolean(server) || targetPath(socket) !== undefined
  return name === 'TCP' || name === 'TLSWrap'
}

/** The bytes of a `_writeGeneric`, about: a character counts as one. */
export function lengthOfWrite(writev: unknown, data: unknown): number {
  if (writev !== true) return (data as { length: number }).length
  let length = 0
  for (const { chunk } of data as { chunk: { length: number } }[]) length += chunk.length
  return length
}
