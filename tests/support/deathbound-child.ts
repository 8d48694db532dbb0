/** Starts itself as a child that has no end of its own, says its process id, and ends as its parent wants, without a teardown. */
import { Child } from './child.ts'

if (process.argv[2] === 'sleeper') setInterval(() => {}, 1000)
else {
  const sleeper = new Child({ teardown() {} }, new URL(import.meta.url), ['sleeper'])
  process.send?.(sleeper.pid)
  process.on('message', () => process.exit())
}
