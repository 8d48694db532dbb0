/**
 * The asynchronous contexts of a fast socket. Async hooks of the program see resources of the same types as those of Node's
 * own handles and requests.
 */
import { AsyncResource, executionAsyncId } from 'node:async_hooks'
import { guard } from '../host/thrown-errors.ts'
import type { WriteCallback } from './fast-handle-contract.ts'
import type { HandleSide } from './socket-handle.ts'

/** A write, or a shutdown, that is under way. Its callback runs in the context in which the program asked for it. */
export class Waiting extends AsyncResource {
  readonly callback: WriteCallback

  constructor(type: string, callback: WriteCallback) {
    super(type)
    this.callback = callback
  }

  complete(error?: Error): void {
    this.runInAsyncScope(guard<Error | null | undefined>, undefined, this.callback, undefined, error)
    this.emitDestroy()
  }
}

/** The asynchronous context of a handle, with the type of Node's own. */
export class HandleScope extends AsyncResource {
  readonly #side: HandleSide

  constructor(side: HandleSide, type: string, triggerAsyncId = executionAsyncId()) {
    super(type, { triggerAsyncId })
    this.#side = side
  }

  /** Detectors of open handles call it. A hook may call it before the constructor is done. */
  hasRef(): boolean {
    return #side in this && this.#side.hasRef()
  }
}
