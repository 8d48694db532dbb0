/**
 * A preload: 30 ms lie between listen(2) of the program's own listener and that of its hashed port, as in a slow process.
 * It comes before `fastsockets/register`, which calls this wrapper as Node's own method. LATE_PLACE is the program's port
 * or path.
 */
import net from 'node:net'

const GAP_MS = 30
const prototype = net.Server.prototype as unknown as { _listen2(...args: unknown[]): void }
const { _listen2 } = prototype

prototype._listen2 = function (this: net.Server, ...args: unknown[]): void {
  _listen2.apply(this, args)
  if (
    args
      .slice(0, 2)
      .map(String)
      .includes(process.env.LATE_PLACE ?? '')
  )
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, GAP_MS)
}
