/** A perf server of raw sockets, and clients that only connect, in one process. Sends how many timers they have left. */
import { setTimeout as delay } from 'node:timers/promises'
import { PERF_MESSAGE_SIZE } from '../../../fastsockets/cli/perf/perf-layout.ts'
import { ASK_TIMEOUT_MS } from '../../../fastsockets/cli/perf/perf-server.ts'
import { openRawServer } from '../../../fastsockets/cli/perf/raw-perf-server.ts'
import { connect } from '../../../fastsockets/raw/index.ts'

const CLIENTS = 20
/** Sooner than a timer would end by itself. */
const SOON_MS = ASK_TIMEOUT_MS / 3

const { port } = await openRawServer({ host: '127.0.0.1', port: 0 })
const before = timers()
for (let i = 0; i < CLIENTS; i++) {
  const socket = await connect({ host: '127.0.0.1', port })
  await socket.recv(Buffer.alloc(PERF_MESSAGE_SIZE))
  socket.reset()
}
const untilMs = performance.now() + SOON_MS
while (timers() > before && performance.now() < untilMs) await delay(10)
process.send?.({ left: timers() - before })

function timers(): number {
  return process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
}
