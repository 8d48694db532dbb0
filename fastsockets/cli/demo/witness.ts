/**
 * Preloaded into the demo's programs, plain and relinked, after `fastsockets/register`: looks at every TCP socket
 * once it is destroyed, and leaves a report at exit. It installs nothing; `wireOf` only reads the recorded wire. The
 * work for each socket is small: a listener and a snapshot per socket would cost HTTP without keep-alive a sixth of
 * its requests.
 *
 * Server sides come from Node's diagnostics channel. The client channel reports `net.connect()` only. Some programs,
 * such as basic-ftp, call `connect` on a socket that they have made: so `Socket.prototype.connect` is watched
 * instead.
 */
import { subscribe } from 'node:diagnostics_channel'
import { writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { isOwn } from '../../../nic/index.ts'
import { type Wire, wireOf } from '../../handle/transport.ts'
import { type Sighting, WITNESS_VARIABLE } from './witness-report.ts'

interface SocketMethods {
  connect(this: net.Socket, ...args: unknown[]): net.Socket
  _destroy(this: net.Socket, error: Error | null, callback: () => void): void
}

const sightings: Sighting[] = []
const openSockets = new Set<net.Socket>()

function note(socket: net.Socket): void {
  const sighting = sightingOf(wireOf(socket))
  sighting.sockets++
  sighting.bytesIn += socket.bytesRead
  sighting.bytesOut += socket.bytesWritten
}

function sightingOf({ transport, reason }: Wire): Sighting {
  for (const known of sightings) {
    if (known.transport === transport && known.reason?.code === reason?.code) return known
  }
  const sighting = { transport, ...(reason && { reason }), sockets: 0, bytesIn: 0, bytesOut: 0 }
  sightings.push(sighting)
  return sighting
}

const folder = process.env[WITNESS_VARIABLE]
if (folder !== undefined) {
  subscribe('net.server.socket', message => {
    const { socket } = message as { socket: net.Socket & { server?: net.Server } }
    // Connections of Fast Sockets itself are not the program's.
    if (socket.server === undefined || !isOwn(socket.server)) openSockets.add(socket)
  })

  const prototype = net.Socket.prototype as unknown as SocketMethods
  const { connect, _destroy } = prototype
  prototype.connect = function (...args) {
    openSockets.add(this)
    return connect.apply(this, args)
  }
  prototype._destroy = function (error, callback) {
    _destroy.call(this, error, callback)
    if (openSockets.delete(this)) note(this)
  }

  process.once('exit', () => {
    for (const socket of openSockets) note(socket)
    writeFileSync(join(folder, `${process.pid}.json`), JSON.stringify(sightings))
  })
}
