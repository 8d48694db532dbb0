/** Gives sockets that native code is about to read a handle that can move, before the rest is loaded. */
import { makeHidden } from '../../nic/own-resources.ts'
import { EarlySide } from '../handle/early-side.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { canPromote, movableTcp, provideWrite } from '../handle/tcp-below.ts'
import { nodeInternals } from '../host/node-internals.ts'

/** `write`: Node's own `_writeGeneric`. `upper`: the TLS socket that is put over `socket`. */
export function takeEarly(
  socket: FastSocket,
  write: FastSocket['_writeGeneric'],
  onWrite: (length: number) => void,
  upper: FastSocket | undefined,
): void {
  if (nodeInternals() === undefined) return
  provideWrite(write)
  const tcp = canPromote() ? movableTcp(socket, undefined, true) : undefined
  if (tcp === undefined || tcp._consumed === true) return
  makeHidden(() => new EarlySide(tcp, socket, onWrite, upper))
}
