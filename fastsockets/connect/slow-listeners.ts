/** Listeners that only TCP reaches: the status page and the 'listening' event show the reason. */
import type net from 'node:net'
import { type FallbackCode, fallbackReason } from '../reasons.ts'
import { EVENTS, publishEvent } from '../status/events.ts'
import { type StatusRow, statusPage } from '../status/status-page.ts'

const rows = new WeakMap<net.Server, StatusRow>()

export function showSlowListener(server: net.Server, reason: FallbackCode): void {
  const name = server.address()
  const { address, port } =
    typeof name === 'object' && name !== null ? name : { address: name ?? '', port: 0 }
  const local = { address, port }
  publishEvent(EVENTS.listening, { local, hashedPort: undefined, reason: fallbackReason(reason) })
  hideSlowListener(server)
  const row = statusPage().open({
    kind: 'listener',
    transport: 'tcp',
    role: 'server',
    local,
    remote: { address: '', port: 0 },
    reason,
  })
  rows.set(server, row)
}

export function hideSlowListener(server: net.Server): void {
  rows.get(server)?.close()
  rows.delete(server)
}

export function slowRowOf(server: net.Server): StatusRow | undefined {
  return rows.get(server)
}
