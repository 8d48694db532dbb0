/**
 * What a program's listener throws is heard by its handler of uncaught exceptions in the asynchronous context of the socket:
 * a test runner, a domain or a logger looks there whose error it is. From within our own calls an error would come out
 * of that context first. If nobody handles it, nothing is caught, and the program ends as if it had been thrown to Node.
 */
import { isUncaughtHandled, tellUncaught } from './node-internals.ts'

/** Calls `action`; what it throws is told at once, in the context that is current now. */
export function guard<T>(action: (argument: T) => void, self?: unknown, argument?: T): void {
  if (!isUncaughtHandled()) return action.call(self, argument as T)
  try {
    action.call(self, argument as T)
  } catch (error) {
    if (!tellUncaught(error)) throw error
  }
}
