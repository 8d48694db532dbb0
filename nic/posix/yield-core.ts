import { loadLibc } from './libc.ts'

/** Lets a runnable thread that waits for this core run (sched_yield(2)). Returns at once if none waits. */
export function yieldCore(): void {
  loadLibc().libc?.sched_yield()
}
