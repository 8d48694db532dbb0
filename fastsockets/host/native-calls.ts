/**
 * Defers the completion of a write until the native call that made the write has returned; native streams accept it no
 * earlier. Our own calls can be such calls: tls and http2 may write while we feed data to them.
 */
import { queueMicrotask } from '../../nic/real-time.ts'

let depth = 0
let isFinishing = false
const completions: (() => void)[] = []

/** `enterNative` and `leaveNative` enclose each call of ours into a native stream; they nest. */
export function enterNative(): void {
  depth++
}

export function leaveNative(): void {
  if (--depth === 0 && completions.length > 0) finish()
}

/**
 * Runs `complete` after our outermost native call; without one in a microtask, after the native caller has returned.
 */
export function afterNativeCall(complete: () => void): void {
  if (depth === 0 && !isFinishing) queueMicrotask(complete)
  else completions.push(complete)
}

function finish(): void {
  if (isFinishing) return
  isFinishing = true
  try {
    for (let complete = completions.shift(); complete !== undefined; complete = completions.shift())
      complete()
  } finally {
    isFinishing = false
    // Reached with completions left only if one of them threw: the others still run.
    if (completions.length > 0) queueMicrotask(finish)
  }
}
