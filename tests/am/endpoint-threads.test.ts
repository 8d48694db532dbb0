/** Endpoints in worker threads and in cluster workers, among each other and with other processes. */
import cluster, { type Worker as ClusterWorker } from 'node:cluster'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Test } from 'tap'
import { type Endpoint, OK } from '../../am/index.ts'
import { Child } from '../support/child.ts'
import { PROCESS_DRIVER_LISTS } from '../support/driver-lists.ts'
import { descriptorCount } from '../support/resources.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver, type World } from '../support/world.ts'
import { ANSWER, ECHO, SINK } from './endpoint-questions.ts'
import type { Order } from './endpoint-worker.ts'

const program = new URL('./endpoint-worker.js', import.meta.url)
const fixture = new URL('./endpoint-child.js', import.meta.url)

interface Introduction {
  readonly name: string
  readonly threadId: number
  readonly pid: number
}

/** A worker of either kind, which answers its orders one after the other. */
class Helper {
  readonly worker: Worker | ClusterWorker
  readonly #inbox: unknown[] = []

  constructor(worker: Worker | ClusterWorker) {
    this.worker = worker
    worker.on('message', (message: unknown) => void this.#inbox.push(message))
  }

  async receive<T>(): Promise<T> {
    return (
      await until('an answer of the worker', () => this.#inbox.length > 0 && [this.#inbox.shift()])
    )[0] as T
  }

  async ask<T>(order: Order): Promise<T> {
    if (this.worker instanceof Worker) this.worker.postMessage(order)
    else this.worker.send(order)
    return await this.receive<T>()
  }
}

function startThread(t: Test, world: World): Helper {
  const worker = new Worker(program, { workerData: world.list.name })
  t.teardown(() => worker.terminate())
  return new Helper(worker)
}

function startClusterWorker(t: Test, world: World): Helper {
  cluster.setupPrimary({ exec: fileURLToPath(program), args: [world.list.name], execArgv: [] })
  const worker = cluster.fork({ NODE_OPTIONS: '' })
  t.teardown(async () => {
    const gone = worker.isDead() ? undefined : once(worker, 'exit')
    worker.process.kill('SIGKILL')
    await gone
  })
  return new Helper(worker)
}

function setEcho(endpoint: Endpoint): void {
  endpoint.setHandler(ECHO, message => message.replyMedium(ANSWER, message.payload(), message.word(0)))
}

for (const [kind, start] of [
  ['worker threads', startThread],
  ['cluster workers', startClusterWorker],
] as const) {
  testOver(
    PROCESS_DRIVER_LISTS,
    `${kind}: among each other, with who has started them, and with another process`,
    async (t, world) => {
      const helpers = [start(t, world), start(t, world)] as const
      const [first, second] = [
        await helpers[0].receive<Introduction>(),
        await helpers[1].receive<Introduction>(),
      ]
      t.not(`${first.pid}/${first.threadId}`, `${second.pid}/${second.threadId}`)
      const own = await world.open()
      setEcho(own)
      const child = new Child(t, fixture, [world.list.name])
      const { name } = await child.ask<{ name: string }>({ ask: 'open' })
      for (const target of [second.name, own.name, name]) {
        t.strictSame(await helpers[0].ask({ callName: target, count: 200 }), { right: 200 })
      }
      t.strictSame(await helpers[1].ask({ callName: first.name, count: 200 }), { right: 200 })
      for (const [i, { name }] of [first, second].entries()) {
        await own.map(i, name)
        t.equal((await own.call(i, ECHO, Buffer.from('x'), [7])).word(0), 7)
      }
      await child.ask({ ask: 'map', destination: 0, name: second.name })
      t.strictSame(await child.ask({ ask: 'call', destination: 0, words: [9] }), { words: [9] })
      for (const helper of helpers) t.strictSame(await helper.ask({ close: true }), { closed: true })
      for (const helper of helpers) await until('its end', () => isOver(helper))
      await until('us to know', () =>
        own.stats().peers.every(({ state, name: peer }) => peer === name || state === 'gone'),
      )
    },
  )

  testOver(
    PROCESS_DRIVER_LISTS,
    `${kind}: one that ends by force in a flood is known to be dead`,
    async (t, world) => {
      const own = await world.open()
      let handled = 0
      let returned = 0
      own.setHandler(SINK, () => void handled++)
      own.setHandler(0, message => {
        if (message.reason === 'PEER_DEAD') returned++
      })
      for (let round = 0; round < 2; round++) {
        const helper = start(t, world)
        const { name } = await helper.receive<Introduction>()
        await own.map(0, name)
        t.strictSame(await helper.ask({ floodName: own.name }), { flooding: true })
        const before = handled
        await until('a part of the flood', () => handled > before + 500)
        if (helper.worker instanceof Worker) await withWatchdog('its end', helper.worker.terminate())
        else helper.worker.process.kill('SIGKILL')
        await until('its end', () =>
          own.stats().peers.some(peer => peer.name === name && peer.state === 'gone'),
        )
        const count = returned
        t.equal(own.request(0, SINK), OK)
        await until('a return', () => returned === count + 1)
      }
    },
  )

  testOver(PROCESS_DRIVER_LISTS, `${kind}: many that come and go leave no descriptors`, async (t, world) => {
    const own = await world.open()
    setEcho(own)
    const round = async (): Promise<void> => {
      const helper = start(t, world)
      await helper.receive<Introduction>()
      t.strictSame(await helper.ask({ callName: own.name, count: 5 }), { right: 5 })
      t.strictSame(await helper.ask({ close: true }), { closed: true })
      await until('its end', () => isOver(helper))
      await until('us to forget', () => own.stats().peers.length === 0)
    }
    await round()
    const before = descriptorCount()
    for (let i = 0; i < 3; i++) await round()
    await until('the descriptors', () => descriptorCount() <= before)
  })
}

function isOver({ worker }: Helper): boolean {
  return worker instanceof Worker ? worker.threadId === -1 : worker.isDead()
}
