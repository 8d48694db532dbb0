/** How names and leases are printed: tables for people, JSON for programs. */
import Table from 'cli-table3'
import type { Entry, Lease } from '../../../nameservice/index.ts'
import { shownJson, shownText } from '../../../nic/shown-text.ts'

const STYLE = { head: [], border: [], compact: true }
export function printEntries(entries: readonly Entry[], isJson: boolean): void {
  if (isJson) return printJson(entries)
  const table = new Table({
    head: ['name', 'endpoint', 'owner', 'pid', 'drivers', 'lease', 'revision'],
    colAligns: ['left', 'left', 'left', 'right', 'left', 'left', 'right'],
    style: STYLE,
  })
  for (const { name, owner, lease, revision, record } of entries) {
    const { endpoint, pid, drivers } = record
    const cells = [name, endpoint, owner, pid, drivers.map(driver => driver.name).join(' '), lease, revision]
    table.push(cells.map(cell => shownText(`${cell}`)))
  }
  process.stdout.write(`${table.toString()}\n`)
}

export function printEntry(entry: Entry, isJson: boolean): void {
  if (isJson) return printJson(entry)
  const { name, owner, lease, revision, record } = entry
  const { drivers, labels, ...plain } = record
  const table = new Table({ style: STYLE })
  const rows = [
    ...Object.entries({ name, owner, lease, revision, ...plain }),
    ...drivers.map(driver => [`driver ${driver.name}`, driver.address]),
    ...Object.entries(labels).map(([label, value]) => [`label ${label}`, value]),
  ]
  for (const row of rows) table.push(row.map(cell => shownText(`${cell}`)))
  process.stdout.write(`${table.toString()}\n`)
}

export function printRegistered(entry: Entry, isJson: boolean): void {
  if (isJson) return printJson(entry)
  process.stdout.write(
    `${shownText(entry.name)} is registered, revision ${entry.revision}, lease ${shownText(entry.lease)}\n`,
  )
}

export function printLeases(leases: readonly Lease[], isJson: boolean): void {
  if (isJson) return printJson(leases)
  const table = new Table({
    head: ['lease', 'owner', 'names', 'ttl', 'left'],
    colAligns: ['left', 'left', 'right', 'right', 'right'],
    style: STYLE,
  })
  for (const { id, owner, names, ttlMs, expiresInMs } of leases) {
    const left = expiresInMs === undefined ? '' : seconds(expiresInMs)
    table.push([shownText(id), shownText(owner), names, seconds(ttlMs), left])
  }
  process.stdout.write(`${table.toString()}\n`)
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function printJson(value: unknown): void {
  process.stdout.write(`${shownJson(value, 2)}\n`)
}
