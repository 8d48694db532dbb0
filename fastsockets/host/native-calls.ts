/**
 * A native stream takes no completion of a write while it is still within the call that made the write. Such a call may
 * be ours: data that we give to tls or http2 can make them write.
 */
import { queueMicrotask } from '../../nic/real-time.ts'

let depth = 0
let isFinishing = false
const completions: (() => void)[] = []

/** Between these two, native code runs on our behalf. */
export function enterNative(): void {
  depth++
}

export function leaveNative(): void {
  if (--depth === 0 && completions.length > 0) finish()
}

/** Runs `complete` as soon as no native call is under way: after ours, or after the one that calls us now. */
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
    // A listener threw.
    if (completions.length > 0) queueMicrotask(finish)
  }
}
