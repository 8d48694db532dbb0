/**
 * Preloaded into the demo's programs, plain and relinked, after `fastsockets/register`: looks at every TCP socket as it
 * closes, and leaves a report at exit. It installs nothing; `transportOf` only reads what is on record.
 *
 * Server sides come from Node's diagnostics channel. The client channel only tells of `net.connect()`, and some programs
 * call `connect` on a socket that they have made themselves, as basic-ftp does: that method is watched instead.
 */
import { subscribe } from 'node:diagnostics_channel'
import { writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { isOwn } from '../../../nic/index.ts'
import { transportOf } from '../../handle/transport.ts'
import type { FallbackReason } from '../../reasons.ts'
import { type Sighting, WITNESS_VARIABLE } from './witness-report.ts'

const sightings = new Map<string, Sighting>()
const openSockets = new Set<net.Socket>()

function watch(socket: net.Socket): void {
  if (openSockets.has(socket)) return
  openSockets.add(socket)
  socket.once('close', () => {
    openSockets.delete(socket)
    note(socket)
  })
}

function note(socket: net.Socket): void {
  const { transport, reason, bytesIn, bytesOut } = transportOf(socket)
  const key = `${transport} ${reason?.code}`
  const sighting = sightings.get(key) ?? newSighting(transport, reason)
  sightings.set(key, sighting)
  sighting.sockets++
  sighting.bytesIn += bytesIn
  sighting.bytesOut += bytesOut
}

function newSighting(transport: string, reason: FallbackReason | undefined): Sighting {
  return { transport, ...(reason === undefined ? {} : { reason }), sockets: 0, bytesIn: 0, bytesOut: 0 }
}

const folder = process.env[WITNESS_VARIABLE]
if (folder !== undefined) {
  subscribe('net.server.socket', message => {
    const { socket } = message as { socket: net.Socket & { server?: net.Server } }
    // Callers of the hashed port, and of the shared memory behind it, are not the program's.
    if (socket.server === undefined || !isOwn(socket.server)) watch(socket)
  })

  const { connect } = net.Socket.prototype
  net.Socket.prototype.connect = function (this: net.Socket, ...args: unknown[]): net.Socket {
    watch(this)
    return (connect as (...args: unknown[]) => net.Socket).apply(this, args)
  }

  process.once('exit', () => {
    for (const socket of openSockets) note(socket)
    writeFileSync(join(folder, `${process.pid}.json`), JSON.stringify([...sightings.values()]))
  })
}
