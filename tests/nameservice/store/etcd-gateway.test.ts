/** How etcd is asked: what is asked a second time, and how long is waited. Its members here only pretend. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { EtcdGateway } from '../../../nameservice/store/etcd-gateway.ts'

type Answer = (response: ServerResponse) => void | Promise<void>

const NOBODY = 'http://127.0.0.1:1'
const silent: Answer = () => {}
const broken: Answer = response => void response.socket?.destroy()
const noLeader: Answer = response => void response.writeHead(503).end('{"code":14}')
const good: Answer = response =>
  void response.end('{"header":{"revision":"7"},"succeeded":true,"ID":"5","TTL":"9"}')

class Member {
  readonly endpoint: string
  asked: readonly string[] = []

  static async start(t: Test, answer: Answer): Promise<Member> {
    const server = createServer((request, response) => {
      request.resume()
      member.asked = [...member.asked, request.url?.replace('/v3/', '') ?? '']
      void answer(response)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    const member = new Member(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    return member
  }

  private constructor(endpoint: string) {
    this.endpoint = endpoint
  }
}

function gatewayTo(t: Test, ...endpoints: string[]): EtcdGateway {
  const gateway = new EtcdGateway({ endpoints })
  t.teardown(() => gateway.close())
  return gateway
}

/** Each with a gateway and members of its own: the one that fails is left. */
async function askAll(t: Test, answer: Answer): Promise<Record<string, string[]>> {
  const asked: Record<string, string[]> = {}
  const questions: [string, (gateway: EtcdGateway) => Promise<unknown>][] = [
    ['get', gateway => gateway.get('k')],
    ['transact', gateway => gateway.transact([], [{ delete: 'k' }])],
    ['transact, harmless', gateway => gateway.transact([], [{ delete: 'k' }], true)],
    ['grant', gateway => gateway.grant(9)],
    ['revoke', gateway => gateway.revoke(5n)],
  ]
  await Promise.all(
    questions.map(async ([what, ask]) => {
      const members = [await Member.start(t, answer), await Member.start(t, answer)]
      await t.rejects(ask(gatewayTo(t, ...members.map(({ endpoint }) => endpoint))), what)
      asked[what] = members.flatMap(({ asked }) => asked)
    }),
  )
  return asked
}

for (const [what, answer] of Object.entries({ silent, broken, noLeader })) {
  t.test(`what may have been done is not asked again: ${what}`, async t => {
    t.strictSame(await askAll(t, answer), {
      get: ['kv/range', 'kv/range'],
      transact: ['kv/txn'],
      'transact, harmless': ['kv/txn', 'kv/txn'],
      grant: ['lease/grant'],
      revoke: ['lease/revoke'],
    })
  })
}

t.test('what cannot have been done is asked of the next', async t => {
  const member = await Member.start(t, good)
  for (const ask of [
    (gateway: EtcdGateway) => gateway.transact([], [{ delete: 'k' }]),
    (gateway: EtcdGateway) => gateway.grant(9),
    (gateway: EtcdGateway) => gateway.revoke(5n),
  ]) {
    await ask(gatewayTo(t, NOBODY, member.endpoint))
  }
  t.strictSame(member.asked, ['kv/txn', 'lease/grant', 'lease/revoke'])
  await t.rejects(gatewayTo(t, NOBODY, NOBODY).get('k'), { cause: { code: 'ECONNREFUSED' } })
})

t.test('a long answer may take longer than 2 s, as long as it goes on', async t => {
  const pieces = ['{"kvs":[', ...Array(6).fill(' '), ']}']
  const { endpoint } = await Member.start(t, async response => {
    for (const piece of pieces) {
      response.write(piece)
      await delay(500)
    }
    response.end()
  })
  t.strictSame(await gatewayTo(t, endpoint).range('k', 1), [])
})
