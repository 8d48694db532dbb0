/** How names and leases are printed: tables for people, JSON for programs. */
import Table from 'cli-table3'
import type { Entry, Lease } from '../../../nameservice/index.ts'

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
    table.push([name, endpoint, owner, pid, drivers.map(driver => driver.name).join(' '), lease, revision])
  }
  process.stdout.write(`${table.toString()}\n`)
}

export function printEntry(entry: Entry, isJson: boolean): void {
  if (isJson) return printJson(entry)
  const { name, owner, lease, revision, record } = entry
  const { drivers, labels, ...plain } = record
  const table = new Table({ style: STYLE })
  table.push(['name', name], ['owner', owner], ['lease', lease], ['revision', revision])
  for (const [field, value] of Object.entries(plain)) table.push([field, value])
  for (const driver of drivers) table.push([`driver ${driver.name}`, driver.address])
  for (const [label, value] of Object.entries(labels)) table.push([`label ${label}`, value])
  process.stdout.write(`${table.toString()}\n`)
}

export function printRegistered(entry: Entry, isJson: boolean): void {
  if (isJson) return printJson(entry)
  process.stdout.write(`${entry.name} is registered, revision ${entry.revision}, lease ${entry.lease}\n`)
}

export function printLeases(leases: readonly Lease[], isJson: boolean): void {
  if (isJson) return printJson(leases)
  const table = new Table({
    head: ['lease', 'owner', 'names', 'ttl', 'left'],
    colAligns: ['left', 'left', 'right', 'right', 'right'],
    style: STYLE,
  })
  for (const { id, owner, names, ttlMs, expiresInMs } of leases) {
    table.push([id, owner, names, seconds(ttlMs), expiresInMs === undefined ? '' : seconds(expiresInMs)])
  }
  process.stdout.write(`${table.toString()}\n`)
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`)
}
