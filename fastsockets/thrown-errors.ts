/**
 * What a program's listener throws is heard by its handler of uncaught exceptions in the asynchronous context of the socket:
 * a test runner, a domain or a logger looks there whose error it is. From within our own calls an error would come out
 * of that context first. If nobody handles it, nothing is caught, and the program ends as if it had been thrown to Node.
 */
import { setImmediate } from '../nic/real-time.ts'

/** Asked within the context, where a domain may be listening. */
export function isHandled(): boolean {
  return process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()
}

/** Calls `action` and, if it throws, lets the error come up by itself, in the context that is current now. */
export function guard<T>(action: (argument: T) => void, self?: unknown, argument?: T): void {
  if (!isHandled()) return action.call(self, argument as T)
  try {
    action.call(self, argument as T)
  } catch (error) {
    throwLater(error)
  }
}

export function throwLater(error: unknown): void {
  setImmediate(rethrow, error)
}

function rethrow(error: unknown): never {
  throw error
}
