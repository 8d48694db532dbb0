/**
 * Makes a program that writes without end return to the event loop. Node completes a write that the kernel accepts within the
 * call, and emits 'drain' by `process.nextTick`: while the peer keeps up, such a program never returns, and nothing can be loaded, found
 * or moved meanwhile.
 *
 * The bytes are with the kernel all the same. Only `writableLength` keeps their number until the next turn, as if the kernel had
 * accepted them then: so `write()` returns false at the high-water mark, and 'drain' and 'finish' wait for that turn.
 */
import net from 'node:net'
import { setImmediate } from '../../nic/real-time.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'

/** What was added to the `writableLength` of sockets in this turn. */
const added = new Map<FastSocket, number>()
const end = net.Socket.prototype.end as (this: FastSocket) => unknown

/** So many writes of a turn complete as always: a program that returns by itself sees no difference. */
const PATIENCE = 64
let writeCount = 0

/** A write of so many bytes, while something is due in the next turn. */
export function askForTurn(socket: FastSocket, length: number): void {
  if (writeCount++ === 0)
    setImmediate(() => {
      writeCount = 0
    })
  if (writeCount > PATIENCE) completeNextTurn(socket, length)
}

/** A write of so many bytes completes, for the program, in the next turn. */
export function completeNextTurn(socket: FastSocket, length: number): void {
  if (!added.has(socket)) setImmediate(complete, socket)
  added.set(socket, (added.get(socket) ?? 0) + length)
  socket._writableState.length += length
}

/** To be called at the begin of a `_writev`, which Node expects to write `writableLength` bytes. */
export function handleWritev(socket: FastSocket): void {
  if (added.size > 0) socket._writableState.writelen -= takeBack(socket)
}

/** To be called before a connect: that of a destroyed socket sets `writableLength` to 0. */
export function takeBack(socket: FastSocket): number {
  const length = added.size === 0 ? 0 : (added.get(socket) ?? 0)
  if (length === 0) return 0
  added.set(socket, 0)
  socket._writableState.length -= length
  return length
}

/** What Node does when a write is complete. */
function complete(socket: FastSocket): void {
  const { _writableState: state } = socket
  takeBack(socket)
  added.delete(socket)
  if (state.length !== 0 || state.errored || socket.destroyed) return
  if (state.ending) {
    // Only `end` looks whether all is written.
    state.ending = false
    end.call(socket)
  } else if (state.needDrain) {
    state.needDrain = false
    socket.emit('drain')
  }
}
