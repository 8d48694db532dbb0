import type { ObservableInput, OperatorFunction } from 'rxjs'
import { rangeError, typeError } from '../errors.ts'
import type { ReceivedMessage } from '../received-message.ts'
import { loadRxjs } from './rxjs.ts'

/**
 * Projects each message to an observable or a promise, `concurrency` of them at a time, and emits their values. The
 * message may be answered until its projection ends; then its credit goes back. So at most `concurrency` messages are
 * being handled, the others wait here in order, and their senders are bounded by their credits.
 *
 * When the subscription ends early (`unsubscribe`, `take`, an error), messages whose projection runs have been handled,
 * and messages that wait return to their senders. Operators before this one must be synchronous: a message that is
 * passed on later has been handled already.
 */
export function handleEach<R>(
  project: (message: ReceivedMessage, index: number) => ObservableInput<R>,
  concurrency = 1,
): OperatorFunction<ReceivedMessage, R> {
  if (typeof project !== 'function') throw typeError('handleEach needs a function of a message')
  if (!(Number.isInteger(concurrency) || concurrency === Number.POSITIVE_INFINITY) || concurrency < 1) {
    throw rangeError(`concurrency must be a whole number from 1, or Infinity, not ${String(concurrency)}`)
  }
  const { defer, finalize, mergeMap, Observable, tap } = loadRxjs()
  return source =>
    new Observable(subscriber => {
      const waiting: ReceivedMessage[] = []
      const handle = (message: ReceivedMessage, index: number) => {
        waiting.shift()
        return defer(() => project(message, index)).pipe(finalize(() => message.release(true)))
      }
      return source
        .pipe(
          tap(message => {
            message.retain()
            waiting.push(message)
          }),
          mergeMap(handle, concurrency),
          finalize(() => {
            for (const message of waiting) message.release(false)
          }),
        )
        .subscribe(subscriber)
    })
}
