/**
 * Takes up offers over verbs, and sends every frame back. A line of JSON each way: `offer` is answered by the driver's
 * `reply`, `close` (an index of its connections) by how many receives of the shared queue are `granted`.
 */
import { createInterface } from 'node:readline'
import { type Driver, drivers } from '../../../nic/index.ts'
import { requireAdapter } from '../../../nic/verbs/open-adapter.ts'
import { until } from '../../support/until.ts'
import { Mover } from '../mover.ts'

export interface Order {
  readonly offer?: string
  readonly close?: readonly number[]
  /** What is to be granted once they are closed. */
  readonly left?: number
}

const TIMEOUT_MS = 60_000
const verbs = drivers.get('verbs') as Driver
const echoes: (Echo | undefined)[] = []

class Echo extends Mover {
  take(frame: Buffer): void {
    this.send(frame)
  }
}

async function accept(offer: string, at: number): Promise<void> {
  const reply = (bytes: Uint8Array): void => say({ reply: Buffer.from(bytes).toString('base64') })
  const end = await verbs.connect(Buffer.from(offer, 'base64'), { reply, timeoutMs: TIMEOUT_MS })
  const echo = new Echo(end)
  echoes[at] = echo
  echo.move()
}

async function close(numbers: readonly number[], left: number): Promise<void> {
  for (const number of numbers) echoes[number]?.end.close()
  const { sharedReceives } = requireAdapter()
  await until('the grants', () => sharedReceives.granted === left)
  say({ granted: sharedReceives.granted })
}

function say(message: object): void {
  console.log(JSON.stringify(message))
}

createInterface({ input: process.stdin }).on('line', line => {
  const { offer, close: closed, left = 0 } = JSON.parse(line) as Order
  if (offer !== undefined) void accept(offer, echoes.push(undefined) - 1)
  if (closed !== undefined) void close(closed, left)
})
requireAdapter()
say({ isReady: true })
