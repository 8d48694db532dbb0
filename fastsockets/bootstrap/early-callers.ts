/** Callers of an early port (early-ports.ts). Loaded with the first one. */
import net, { type Socket } from 'node:net'
import { makeHidden } from '../../nic/own-resources.ts'
import { markOwn } from '../../nic/own-sockets.ts'
import { encodeEarly, HELLO_MAGIC, mayBe } from './bootstrap-layout.ts'
import { isOfThisHost } from './held-probe.ts'

/** With so many waiting the server loads the rest, which counts callers by their users, and hangs up on this one. */
const CALLERS_MAX = 256
/** For what is loaded, too. */
const TIMEOUT_MS = 5000

/** Where they call. */
interface Called {
  readonly callers: Set<Socket>
  greet(caller: Socket): void
}

let callerCount = 0

/** Greets a caller of the listener on `port` as far as is known. Calls `onWanted` if it asks for the rest. */
export function greetEarly(early: Called, handle: object, port: number, onWanted: () => void): void {
  makeHidden(() => {
    const caller = new net.Socket({ handle, readable: true, writable: true } as never)
    markOwn(caller)
    caller.unref()
    caller.on('error', () => caller.destroy())
    const isNear = isOfThisHost(caller)
    if (isNear && callerCount >= CALLERS_MAX) onWanted()
    if (!isNear || callerCount >= CALLERS_MAX) return void caller.destroy()
    callerCount++
    caller.on('close', () => {
      callerCount--
      early.callers.delete(caller)
    })
    caller.setTimeout(TIMEOUT_MS, () => caller.destroy())
    let received = Buffer.alloc(0)
    caller.on('data', bytes => {
      received = Buffer.concat([received, bytes])
      if (!mayBe(HELLO_MAGIC, received) || received.length > HELLO_MAGIC.length) return void caller.destroy()
      if (received.length < HELLO_MAGIC.length) return
      early.greet(caller)
      onWanted()
    })
    caller.write(encodeEarly(port))
  })
}
