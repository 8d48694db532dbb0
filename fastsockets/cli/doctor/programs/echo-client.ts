/**
 * Sends a small message repeatedly, compares the echo, and measures each round trip. On a slow machine it sends fewer:
 * the doctor waits for the answer.
 */
import { randomFillSync } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import { createHistogram } from 'node:perf_hooks'
import { transportOf } from '../../../handle/transport.ts'

export interface EchoReport {
  readonly wire: string
  /** The fallback reason; undefined on a fast wire. */
  readonly reason?: string
  readonly roundTripUs: number
}

const MESSAGE_SIZE = 64
const WARM_UP_COUNT = 1000
const ROUND_TRIP_COUNT = 2000
/** After this time no more is sent, once one round trip was measured. */
const ENOUGH_MS = 2000

const socket = net.connect({ port: Number(process.argv[2]), host: '127.0.0.1', noDelay: true })
await once(socket, 'connect')
const histogram = createHistogram()
await repeat(WARM_UP_COUNT, () => {})
await repeat(ROUND_TRIP_COUNT, elapsedNs => histogram.record(elapsedNs))
const { transport: wire, reason } = transportOf(socket)
const report: EchoReport = {
  wire,
  ...(reason ? { reason: reason.text } : {}),
  roundTripUs: histogram.percentile(50) / 1000,
}
console.log(JSON.stringify(report))
socket.destroy()

async function repeat(countMax: number, record: (elapsedNs: number) => void): Promise<void> {
  const endMs = performance.now() + ENOUGH_MS / 2
  for (let i = 0; i < countMax && (i === 0 || performance.now() < endMs); i++) record(await roundTrip())
}

function roundTrip(): Promise<number> {
  const sent = randomFillSync(Buffer.alloc(MESSAGE_SIZE))
  return new Promise((resolve, reject) => {
    const received: Buffer[] = []
    let heardLength = 0
    const startedAt = process.hrtime.bigint()
    const handleData = (bytes: Buffer): void => {
      received.push(bytes)
      heardLength += bytes.length
      if (heardLength < MESSAGE_SIZE) return
      const elapsedNs = Number(process.hrtime.bigint() - startedAt)
      socket.off('data', handleData).off('close', lose)
      if (Buffer.concat(received).equals(sent)) resolve(elapsedNs)
      else reject(new Error('other bytes came back than were sent'))
    }
    const lose = (): void => reject(new Error('the connection was lost'))
    socket.on('data', handleData).on('close', lose)
    socket.write(sent)
  })
}
