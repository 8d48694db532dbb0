/** Endpoints that cannot be dialled at the moment are not taken for dead. */
import net from 'node:net'
import type { Test } from 'tap'
import { decodeName, type EndpointName, rendezvousPath } from '../../am/rendezvous/endpoint-name.ts'
import { Child } from '../support/child.ts'
import { PROCESS_DRIVER_LISTS } from '../support/driver-lists.ts'
import { errorOf } from '../support/endpoints.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver } from '../support/world.ts'
import { ECHO } from './endpoint-questions.ts'

const fixture = new URL('./endpoint-child.js', import.meta.url)
const fewDescriptors = new URL('./few-descriptors-child.js', import.meta.url)
/** More than any system lets wait. */
const CALLERS_MAX = 10_000

/** Calls a thread that accepts no connection until the kernel queues no more; returns the last error. */
async function crowd(t: Test, name: EndpointName): Promise<string | undefined> {
  const callers: net.Socket[] = []
  t.teardown(() => {
    for (const caller of callers) caller.destroy()
  })
  for (let i = 0; i < CALLERS_MAX; i++) {
    const caller = net.connect({ path: rendezvousPath(name.thread) })
    callers.push(caller)
    const refusal = await new Promise<string | undefined>(resolve => {
      caller.once('connect', () => resolve(undefined))
      caller.once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
    })
    caller.on('error', () => {})
    if (refusal !== undefined) return refusal
  }
  return undefined
}

testOver(
  PROCESS_DRIVER_LISTS,
  'a thread that is too busy to take its callers up is mapped once it does',
  async (t, world) => {
    const a = await world.open()
    const child = new Child(t, fixture, [world.list.name])
    const { name } = await child.ask<{ name: string }>({ ask: 'open' })
    child.process.kill('SIGSTOP')
    t.equal(await crowd(t, decodeName(name) as EndpointName), 'EAGAIN')
    const mapping = errorOf(a.map(0, name))
    for (let i = 0; i < 100; i++) await new Promise(resolve => setImmediate(resolve))
    child.process.kill('SIGCONT')
    t.strictSame(await withWatchdog('the map', mapping), { resolved: undefined })
    t.equal((await a.call(0, ECHO, undefined, [7])).word(0), 7)
  },
)

testOver(
  PROCESS_DRIVER_LISTS,
  'a process at its limit of descriptors maps no endpoint, and the destination keeps its endpoint',
  async (t, world) => {
    const shell = ['-c', 'ulimit -n 100; exec "$0" "$@"', process.execPath]
    const limits = { execPath: '/bin/sh', execArgv: shell }
    const child = new Child(t, fewDescriptors, [world.list.name], limits)
    t.strictSame(await child.receive(), {
      limit: 'EMFILE',
      code: 'ERR_AM_UNREACHABLE',
      before: 1,
      after: 2,
    })
    t.equal((await child.end()).code, 0)
  },
)

testOver(
  PROCESS_DRIVER_LISTS,
  'a peer that is known, and does not run, is not waited for for ever',
  async (t, world) => {
    const child = new Child(t, fixture, [world.list.name])
    const { name } = await child.ask<{ name: string }>({ ask: 'open' })
    const a = await world.open()
    await a.map(0, name)
    child.process.kill('SIGSTOP')
    await t.rejects(withWatchdog('an answer', a.map(1, name)), { code: 'ERR_AM_TIMEOUT' })
    child.process.kill('SIGCONT')
    await a.map(2, name)
    for (const destination of [0, 2]) t.equal((await a.call(destination, ECHO, undefined, [7])).word(0), 7)
    a.unmap(0)
    a.unmap(2)
    await until('the last peer to be gone', () => a.stats().peers.length === 0)
  },
)
