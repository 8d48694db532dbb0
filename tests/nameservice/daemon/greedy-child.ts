/**
 * One user that takes all there is of one resource, as fast as possible: many requests at once, on many connections.
 * Each message is one attempt; its answer counts the problems, with `ok` for none. It keeps what it got.
 */

import { Agent } from 'node:http'
import { connect, type Socket } from 'node:net'
import { PROBLEM_URN } from '../../../nameservice/index.ts'
import { askHttp, type HttpReply } from '../../support/named.ts'

export interface Attempt {
  readonly what: 'leases' | 'names' | 'bytes' | 'watchers' | 'connections' | 'silent'
  readonly count: number
  /** What its names begin with. */
  readonly prefix?: string
}

export type Outcome = Readonly<Record<string, number>>

const AT_ONCE = 50
const RECORD_LABELS = Object.fromEntries('abcdefgh'.split('').map(key => [key, 'x'.repeat(250)]))
const socketPath = process.argv[2] as string
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
const kept: Socket[] = []

function ask(method: string, path: string, body: object): Promise<HttpReply> {
  const payload = JSON.stringify(body)
  const headers = { 'content-type': 'application/json', 'content-length': String(payload.length) }
  return askHttp({ socketPath, agent, method, path, headers, payload })
}

async function register(name: string, labels: object): Promise<string> {
  let lease = leases.at(-1)
  let reply = await ask('PUT', `/v1/names/${name}`, { lease, record: { endpoint: 'e', labels } })
  // A lease has a limit of its own: the next one.
  if (problemOf(reply) === 'limit-names' && /lease/i.test(String(reply.json.detail))) {
    if (leases.at(-1) === lease) await grant()
    lease = leases.at(-1)
    reply = await ask('PUT', `/v1/names/${name}`, { lease, record: { endpoint: 'e', labels } })
  }
  return problemOf(reply)
}

const leases: string[] = []

async function grant(): Promise<string> {
  const reply = await ask('POST', '/v1/leases', { ttlMs: 86_400_000 })
  if (reply.status === 201) leases.push(String(reply.json.id))
  return problemOf(reply)
}

function problemOf({ status, json }: HttpReply): string {
  return status < 300 ? 'ok' : String(json.type).slice(PROBLEM_URN.length)
}

/** Opens a connection, and perhaps a watch on it. Silent ones are asked for the problem that they were told, if any. */
function open(request: string): Promise<string> {
  return new Promise(resolve => {
    const socket = connect(socketPath, () => socket.write(request))
    kept.push(socket)
    let text = ''
    socket.on('error', () => resolve('error'))
    socket.once('close', () => resolve('closed'))
    socket.setEncoding('utf8').on('data', chunk => {
      text += chunk
      const [, code] = /urn:fastsockets:problem:([a-z-]+)/.exec(text) ?? []
      if (code !== undefined || text.startsWith('HTTP/1.1 200')) resolve(code ?? 'ok')
    })
  })
}

async function attempt({ what, prefix = 'x' }: Attempt, i: number): Promise<string> {
  switch (what) {
    case 'leases':
      return await grant()
    case 'names':
      return await register(`${prefix}/${i}`, {})
    case 'bytes':
      return await register(`${prefix}/b${i}`, RECORD_LABELS)
    case 'watchers':
      return await open('GET /v1/watch HTTP/1.1\r\nhost: x\r\n\r\n')
    case 'silent':
      return await new Promise(resolve => {
        kept.push(connect(socketPath, () => resolve('ok')).on('error', () => {}))
      })
    case 'connections':
      // A body that does not come keeps it busy.
      return await Promise.race([
        open(
          'POST /v1/leases HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{',
        ),
        new Promise<string>(resolve => setTimeout(resolve, 2000, 'ok')),
      ])
  }
}

process.on('message', async (asked: Attempt) => {
  const outcome: Record<string, number> = {}
  let next = 0
  const work = async (): Promise<void> => {
    while (next < asked.count) {
      const result = await attempt(asked, next++)
      outcome[result] = (outcome[result] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  process.send?.(outcome)
})
process.send?.('up')
