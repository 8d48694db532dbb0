/** Shows UDP sockets on the status page. What of their datagrams has left the kernel is in rows of its own: the streams of pairs. */
import { allowsDatagrams } from '../policy/own-policy.ts'
import { statusPage } from '../status/status-page.ts'
import type { Sender, UdpHandle, UdpNotes } from './udp-notes.ts'

/** Shows a bound socket, with why only the kernel may carry its datagrams; or shows what has changed. */
export function showSocket(handle: UdpHandle, notes: UdpNotes): void {
  notes.row?.close()
  notes.row = undefined
  const { address, port }: Partial<Sender> = nameOf(handle)
  if (address === undefined || port === undefined) return
  const reason = notes.reason ?? (allowsDatagrams() ? undefined : 'POLICY')
  const row = {
    kind: 'udp',
    transport: 'udp',
    local: { address, port },
    remote: notes.connectedTo,
    ...(reason && { reason }),
  } as const
  notes.row = statusPage().open(row, true)
}

function nameOf(handle: UdpHandle): Partial<Sender> {
  const name: Partial<Sender> = {}
  handle.getsockname(name)
  return name
}
