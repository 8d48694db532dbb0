/** Measures for longer than any test waits. argv: name of the contestant. Sends the process ids of both halves once they are busy. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Contestant } from '../../bench/contestants/contestant.ts'
import { withPair } from '../../bench/half.ts'

const [name] = process.argv.slice(2)
/** Both are in their loops. */
const BUSY_AFTER_MS = 500
const LONG_MS = 3_600_000

const file = new URL(`../../bench/contestants/${name}.js`, import.meta.url)
const { contestant } = (await import(file.href)) as { contestant: Contestant }
await withPair(contestant, async ({ client }) => {
  const measured = client.ask({ ask: 'pingPong', size: 8, warmUpMs: LONG_MS, ms: 0 })
  await sleep(BUSY_AFTER_MS)
  const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
  process.send?.(children.trim().split(' ').map(Number))
  await measured
})
