import { existsSync, readFileSync } from 'node:fs'

const COUNTERS = '/sys/class/infiniband/rxe0/ports/1/hw_counters/'

/** How often the device has found a receiver without a receive, on either side. An iWARP connection ends at the first time. */
export function receiverNotReadyCount(): number {
  if (!existsSync(COUNTERS)) return 0
  const counts = ['rcvd_rnr_err', 'send_rnr_err'].map(name => Number(readFileSync(COUNTERS + name, 'utf8')))
  return counts.reduce((sum, count) => sum + count)
}
