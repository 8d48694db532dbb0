/**
 * A client that may open few files: connects, one by one, until that fails or 400 are up. argv: port, how many files it
 * opens first: `none`, or `all` that it may; or `burst`, for 5000 connections at once when the first is up.
 */
import { once } from 'node:events'
import { openSync } from 'node:fs'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const COUNT = 400
const BURST = 5000
const [port, files] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

const sockets: net.Socket[] = []
const report: { connected: number; wire?: string; reason?: string; error?: string } = { connected: 0 }
if (files === 'all') takeAllFiles()
try {
  while (sockets.length < (files === 'burst' ? 1 : COUNT)) await connect()
  if (files === 'burst') await Promise.all(Array.from({ length: BURST }, connect))
} catch (error) {
  report.error = (error as NodeJS.ErrnoException).code ?? String(error)
}
const { transport, reason } = transportOf(sockets.at(-1) as net.Socket)
Object.assign(report, { wire: transport, ...(reason && { reason: reason.code }) })
process.send?.(report)

async function connect(): Promise<void> {
  const socket = net.connect(Number(port), '127.0.0.1')
  sockets.push(socket)
  await once(socket, 'connect')
  report.connected++
}

function takeAllFiles(): void {
  try {
    for (;;) openSync('/dev/null', 'r')
  } catch {
    // That was the last one.
  }
}
