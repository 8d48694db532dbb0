/** Corners of the API of servers, with connections that have moved: what plain programs see is seen. */
import t, { type Test } from 'tap'
import { readStatusOf } from '../../../fastsockets/status/read-status.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'

const env = { ...plainEnvironment(), FASTSOCKETS_START: 'tcp', FASTSOCKETS_ABLATE: 'price=0,no-direct' }

interface Pair {
  readonly server: Child
  readonly client: Child
  /** Until the server's log has that last line. */
  logUntil(last: string): Promise<string[]>
}

async function start(t: Test, isMoved: boolean, order: object): Promise<Pair> {
  const options = isMoved ? relinked({ env }) : {}
  const server = new Child(t, program('corners'), ['server'], options)
  const port = await server.ask<number>(order)
  const client = new Child(t, program('corners'), ['client', String(port), isMoved ? 'all' : 'none'], options)
  const logUntil = async (last: string): Promise<string[]> => {
    const log: string[] = []
    await eventually(last, async () => {
      log.push(...(await server.ask<string[]>({ run: 'log' })))
      return log.includes(last)
    })
    return log
  }
  return { server, client, logUntil }
}

type Scenario = (pair: Pair) => Promise<unknown>

/** Runs the scenario plain and with connections that have moved. */
function compare(name: string, order: object, scenario: Scenario): void {
  t.test(name, async t => {
    const plain = await scenario(await start(t, false, { run: 'serve', ...order }))
    const pair = await start(t, true, { run: 'serve', ...order })
    t.strictSame(await scenario(pair), plain)
    const [{ promoted = 0 } = {}] = readStatusOf(pair.client.pid)
    t.ok(promoted > 0, `${promoted} have moved`)
  })
}

const many = { options: {}, maxConnections: 2 }
compare('maxConnections, drop, getConnections and close', many, async ({ server, client, logUntil }) => {
  const seen: unknown[] = [await client.ask({ run: 'open', count: 2 })]
  seen.push(await server.ask({ run: 'count' }), await client.ask({ run: 'dropped' }))
  seen.push(await logUntil('drop true'))
  seen.push(await client.ask({ run: 'end', count: 1 }), await logUntil('1 close false'))
  seen.push(await server.ask({ run: 'count' }), await client.ask({ run: 'open' }))
  seen.push(await server.ask({ run: 'close' }), await server.ask({ run: 'count' }))
  seen.push(await client.ask({ run: 'end', count: 2 }), await client.ask({ run: 'end', count: 3 }))
  seen.push(await logUntil('server close'))
  return seen
})

compare('allowHalfOpen', { options: { allowHalfOpen: true } }, async ({ client, logUntil }) => {
  const opened = await client.ask({ run: 'open', count: 2, half: true })
  const ended = [await client.ask({ run: 'end', count: 1 }), await client.ask({ run: 'end', count: 2 })]
  return [opened, ended, await logUntil('2 close false')]
})

compare('pauseOnConnect', { options: { pauseOnConnect: true } }, async ({ client, logUntil }) => {
  const opened = await client.ask({ run: 'open', count: 2 })
  const ended = [await client.ask({ run: 'end', count: 2 }), await client.ask({ run: 'end', count: 1 })]
  return [opened, ended, await logUntil('1 close false')]
})

compare(
  'destroyed clients, and a server that closes',
  { options: {} },
  async ({ server, client, logUntil }) => {
    const opened = await client.ask({ run: 'open', count: 2 })
    const closing = await server.ask({ run: 'close' })
    await client.ask({ run: 'destroy' })
    return [opened, closing, (await logUntil('server close')).sort()]
  },
)
