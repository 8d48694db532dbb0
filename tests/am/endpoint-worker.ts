/** An endpoint in a worker thread or a cluster worker: answers, and calls the endpoints that it is given. */
import cluster from 'node:cluster'
import { parentPort, threadId, workerData } from 'node:worker_threads'
import { openEndpoint } from '../../am/index.ts'
import { optionsOf } from '../support/driver-lists.ts'
import { ANSWER, ECHO, SINK } from './endpoint-questions.ts'

export interface Order {
  readonly callName?: string
  readonly count?: number
  readonly floodName?: string
  readonly close?: boolean
}

const listName = cluster.isWorker ? process.argv[2] : (workerData as string)
const tell = (message: object): void => void (parentPort?.postMessage(message) ?? process.send?.(message))
const endpoint = await openEndpoint({ ...optionsOf(listName), segment: 1 << 20 })
endpoint.setHandler(ECHO, message => message.replyMedium(ANSWER, message.payload(), message.word(0)))
endpoint.setHandler(SINK, () => {})
// The thread lives as long as its port or its endpoint keeps it alive; the test ends both.
parentPort?.on('message', take)
if (cluster.isWorker) process.on('message', take)
tell({ name: endpoint.name, threadId, pid: process.pid })

let nextDestination = 0

async function take(order: Order): Promise<void> {
  if (order.callName !== undefined) await call(order.callName, order.count ?? 1)
  if (order.floodName !== undefined) await flood(order.floodName)
  if (order.close) await close()
}

async function call(name: string, count: number): Promise<void> {
  const destination = nextDestination++
  await endpoint.map(destination, name)
  let right = 0
  for (let i = 0; i < count; i++) {
    const payload = Buffer.from(`call ${i} from thread ${threadId}`)
    const reply = await endpoint.call(destination, ECHO, payload, [i])
    if (reply.word(0) === i && payload.equals(reply.payload())) right++
  }
  tell({ right })
}

/** For as long as the thread lives. */
async function flood(name: string): Promise<never> {
  const destination = nextDestination++
  await endpoint.map(destination, name)
  tell({ flooding: true })
  for (;;) {
    if (endpoint.request(destination, SINK) !== 0) await endpoint.ready(destination)
  }
}

async function close(): Promise<void> {
  await endpoint.close()
  tell({ closed: true })
  parentPort?.close()
  if (cluster.isWorker) process.disconnect()
}
