/** What `fastsockets explain` and `doctor HOST:PORT` find in this container, asked again and again over IPC. */

import { pairChecks } from '../../../fastsockets/cli/doctor/pair-checks.ts'
import { explain } from '../../../fastsockets/cli/explain/explain.ts'

export interface Wanted {
  readonly host: string
  readonly port: number
  readonly folder?: string
  /** From now on this user. */
  readonly uid?: number
  /** From now on memfd_create(2) fails. */
  readonly isMemoryDenied?: boolean
}

process.on('message', (wanted: Wanted) => {
  void find(wanted).then(found => process.send?.(found))
})
process.on('disconnect', () => process.exit())

async function find({ host, port, folder, uid, isMemoryDenied }: Wanted): Promise<object> {
  if (folder !== undefined) process.env.FASTSOCKETS_RENDEZVOUS = folder
  if (uid !== undefined) process.setuid?.(uid)
  if (isMemoryDenied) await import('./deny-memory.ts')
  const [explained] = await explain(host, port)
  return { explained, checks: await pairChecks({ host, port }) }
}
