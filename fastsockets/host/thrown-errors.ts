/**
 * Passes an error of a program's listener to the program's handler of uncaught exceptions in the asynchronous context
 * of the socket. Test runners, domains and loggers find the error's owner by that context; an error that leaves our
 * frames would lose it. Without a handler nothing is caught, and the program ends as under plain Node.
 */
import { isUncaughtHandled, reportUncaught } from './node-internals.ts'

/** Calls `action`; the program's handler gets an error at once, in the current asynchronous context. */
export function guard<T>(action: (argument: T) => void, self?: unknown, argument?: T): void {
  if (!isUncaughtHandled()) return action.call(self, argument as T)
  try {
    action.call(self, argument as T)
  } catch (error) {
    if (!reportUncaught(error)) throw error
  }
}
