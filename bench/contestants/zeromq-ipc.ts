/** zeromq.js over ipc://: a router that answers, and a dealer for each client. It has flow control of its own. */
import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LatencyHistogram } from '../latency-histogram.ts'
import { missingPackage } from '../missing-package.ts'
import type { Client, Contestant, Received } from './contestant.ts'

const ECHO = 'e'
const DATA = 'd'
const COUNT = 'c'

export const contestant: Contestant = {
  name: 'zeromq-ipc',
  what: 'zeromq.js, dealer and router over ipc://',
  abilities: ['pingPong', 'stream'],
  polls: false,
  relinked: [],
  partner: 'server',
  packages: ['zeromq'],
  whyNot: () => missingPackage('zeromq'),
  serve,
  dial,
}

async function serve(): Promise<string> {
  const { Router } = await import('zeromq')
  const router = new Router({ linger: 0 })
  // On Linux an abstract name, which leaves no file behind.
  const name = `fastsockets-bench-${randomUUID()}`
  const address = `ipc://${process.platform === 'linux' ? `@${name}` : join(tmpdir(), name)}`
  await router.bind(address)
  void answerAll(router)
  return address
}

type Zeromq = typeof import('zeromq')

async function answerAll(router: InstanceType<Zeromq['Router']>): Promise<void> {
  const counts = new Map<string, { bytes: number; startMs: number }>()
  for await (const [sender, kind, payload] of router) {
    if (sender === undefined || kind === undefined) continue
    if (kind.toString() === ECHO) {
      await router.send([sender, kind, payload ?? ''])
      continue
    }
    const key = sender.toString('hex')
    const count = counts.get(key) ?? { bytes: 0, startMs: performance.now() }
    if (kind.toString() === DATA) {
      counts.set(key, count)
      count.bytes += payload?.length ?? 0
      continue
    }
    counts.delete(key)
    const received: Received = { bytes: count.bytes, ms: performance.now() - count.startMs }
    await router.send([sender, kind, JSON.stringify(received)])
  }
}

async function dial(address: string): Promise<Client> {
  const { Dealer } = await import('zeromq')
  const dealer = new Dealer({ linger: 0 })
  dealer.connect(address)
  return {
    pingPong: async (size: number, ms: number, latencies: LatencyHistogram) => {
      const message = Buffer.alloc(size, 1)
      const endMs = performance.now() + ms
      let startMs = performance.now()
      while (startMs < endMs) {
        await dealer.send([ECHO, message])
        await dealer.receive()
        const nowMs = performance.now()
        latencies.recordMs(nowMs - startMs)
        startMs = nowMs
      }
    },
    stream: async (size: number, ms: number) => {
      const message = Buffer.alloc(size, 1)
      const endMs = performance.now() + ms
      do await dealer.send([DATA, message])
      while (performance.now() < endMs)
      await dealer.send([COUNT, ''])
      const [, answer] = await dealer.receive()
      return JSON.parse(String(answer)) as Received
    },
    close: async () => dealer.close(),
  }
}
