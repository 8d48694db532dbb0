/**
 * `npm run bench:rpc`: RPC over active messages beside what users have without it, all in one run: Connect over HTTP/2 and loopback TCP,
 * Comlink over a worker's port, `child.send`, and the active messages below: a call, and a request whose reply runs a handler (the raw
 * round trip that the VI paper compares local RPC with). Medians of the rounds' ratios.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { createClient, type Transport } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import Table from 'cli-table3'
import * as Comlink from 'comlink'
import { median } from 'simple-statistics'
import { openEndpoint } from '../am/index.ts'
import { createFastTransport } from '../am/rpc/connect/index.ts'
import { connectService, messagePort } from '../am/rpc/index.ts'
import { exitOnInterrupt } from '../fastsockets/cli/interrupts.ts'
import { describeMachine, warnUnlessQuiet } from './machine.ts'
import { nodeEndpoint } from './programs/comlink-node.ts'
import { Echo } from './programs/echo_pb.ts'
import { benched, type calculator, ECHO, ECHOED, type Started } from './programs/rpc-protocol.ts'

const SERVER = fileURLToPath(new URL('programs/rpc-server.js', import.meta.url))
const ROUNDS = Number(process.argv[2] ?? 5)
const MS = Number(process.argv[3] ?? 400)
const SMALL = new Uint8Array(64).fill(1)
const ITEM = new Uint8Array(1024).fill(2)
const LARGE = new Uint8Array(1024 * 1024).fill(3)
const TEXT = 'x'.repeat(64)

exitOnInterrupt()
warnUnlessQuiet(await describeMachine())

const child = fork(SERVER, { serialization: 'advanced' })
const [{ name, port }] = (await once(child, 'message')) as [Started]
/** A process of its own: once RPC has received a long payload, malloc keeps freed memory, which `child.send` would profit from. */
const plain = fork(SERVER, { serialization: 'advanced' })
await once(plain, 'message')
const worker = new Worker(SERVER)
const endpoint = await openEndpoint()
await endpoint.map(0, name)
const service = await connectService(endpoint, 0, benched)
let handleEcho = (): void => {}
endpoint.setHandler(ECHOED, () => handleEcho())
const clientOf = (transport: Transport) => createClient(Echo, transport)
const fast = clientOf(createFastTransport({ endpoint, to: 0 }))
const http = clientOf(createConnectTransport({ baseUrl: `http://127.0.0.1:${port}`, httpVersion: '2' }))
const near = Comlink.wrap<typeof calculator>(nodeEndpoint(worker))
const far = Comlink.wrap<typeof calculator>(messagePort(endpoint, 0, { channel: 'comlink' }))

function roundTrip(): Promise<void> {
  return new Promise(resolve => {
    handleEcho = resolve
    endpoint.requestMedium(0, ECHO, SMALL)
  })
}

async function send(): Promise<void> {
  const answer = once(plain, 'message')
  plain.send(LARGE)
  await answer
}

async function receive(client: typeof fast, count: number): Promise<void> {
  for await (const _ of client.server({ count, data: ITEM }));
}

/** Microseconds of one operation, once for warming up. */
async function time(operation: () => Promise<unknown>, perOperation = 1): Promise<number> {
  let us = 0
  for (const ms of [MS / 2, MS]) {
    const beginMs = performance.now()
    let count = 0
    while (performance.now() - beginMs < ms) {
      await operation()
      count++
    }
    us = ((performance.now() - beginMs) * 1000) / (count * perOperation)
  }
  return us
}

interface Row {
  readonly what: string
  readonly against: string
  /** Ours may take this share of the other's time. */
  readonly most: number
  readonly ours: () => Promise<number>
  readonly other: () => Promise<number>
}

const STREAM = 2000
const rows: Row[] = [
  {
    what: 'Connect unary, 64 B',
    against: 'the same over HTTP/2',
    most: 1 / 4,
    ours: () => time(() => fast.unary({ data: SMALL })),
    other: () => time(() => http.unary({ data: SMALL })),
  },
  {
    what: 'Connect stream, item of 1 KiB',
    against: 'the same over HTTP/2',
    most: 1 / 5,
    ours: () => time(() => receive(fast, STREAM), STREAM),
    other: () => time(() => receive(http, STREAM), STREAM),
  },
  {
    what: 'service call, 64 B as bytes',
    against: 'endpoint.call',
    most: 1.5,
    ours: () => time(() => service.bytes(SMALL)),
    other: () => time(() => endpoint.call(0, ECHO, SMALL)),
  },
  {
    what: 'service call, 64 B by v8',
    against: 'raw active message',
    most: 2,
    ours: () => time(() => service.echo(SMALL)),
    other: () => time(roundTrip),
  },
  {
    what: 'service call, string of 64 by v8',
    against: 'raw active message',
    most: 2,
    ours: () => time(() => service.echo(TEXT)),
    other: () => time(roundTrip),
  },
  {
    what: 'Comlink call',
    against: "over a worker's port",
    most: 1,
    ours: () => time(() => far.add(1, 2)),
    other: () => time(() => near.add(1, 2)),
  },
  {
    what: 'argument of 1 MiB',
    against: 'child.send, advanced',
    most: 1 / 5,
    ours: () => time(() => service.length(LARGE)),
    other: () => time(send),
  },
]

const table = new Table({ head: ['measurement', 'us', 'against', 'us', 'share of its time', 'at most', ''] })
const figures = rows.map(() => ({ ours: [] as number[], other: [] as number[], shares: [] as number[] }))
for (let round = 0; round < ROUNDS; round++) {
  process.stderr.write(`round ${round + 1} of ${ROUNDS}\n`)
  for (const [i, row] of rows.entries()) {
    const figure = figures[i] as (typeof figures)[number]
    const isFirst = round % 2 === 0
    const first = await (isFirst ? row.ours : row.other)()
    const second = await (isFirst ? row.other : row.ours)()
    const [ours, other] = isFirst ? [first, second] : [second, first]
    figure.ours.push(ours)
    figure.other.push(other)
    figure.shares.push(ours / other)
  }
}
for (const [i, { what, against, most }] of rows.entries()) {
  const { ours, other, shares } = figures[i] as (typeof figures)[number]
  const share = median(shares)
  const verdict = share <= most ? 'holds' : 'MISSED'
  const texts = [
    median(ours).toFixed(1),
    against,
    median(other).toFixed(1),
    share.toFixed(3),
    most.toFixed(2),
    verdict,
  ]
  table.push([what, ...texts])
}
process.stdout.write(`${table.toString()}\n`)
child.disconnect()
plain.disconnect()
await worker.terminate()
await endpoint.close()
