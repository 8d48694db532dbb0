/** Looks after what this thread has published in the rendezvous folder, which others may empty, delete or fill. */
import { openLog } from '../log.ts'
import { clearInterval, setInterval } from '../real-time.ts'

const log = openLog('fastsockets:rendezvous')

/** Milliseconds between two looks. No event tells of a new address, and a look costs some system calls. */
const REFRESH_MS = 2000

const refreshed = new Set<() => void>()
let timer: NodeJS.Timeout | undefined

/** Calls `refresh` from now on, until the returned function is called. Does not keep the event loop alive. */
export function refreshRegularly(refresh: () => void): () => void {
  refreshed.add(refresh)
  timer ??= setInterval(refreshAll, REFRESH_MS).unref()
  return () => {
    refreshed.delete(refresh)
    if (refreshed.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

function refreshAll(): void {
  for (const refresh of refreshed) {
    try {
      refresh()
    } catch (error) {
      // The folder may no longer be searched, or descriptors are used up: no reason to end the program. The next look may succeed.
      log('%s', (error as Error).message)
    }
  }
}
