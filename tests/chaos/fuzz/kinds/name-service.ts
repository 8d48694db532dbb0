/** Requests to a real daemon of the name service, several at a time on each connection. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { NameClient } from '../../../../nameservice/index.ts'
import { plainEnvironment } from '../../../support/child.ts'
import type { Random } from '../../../support/random.ts'
import { eventually, withWatchdog } from '../../../support/until.ts'
import type { Attack, Kind } from '../kind.ts'
import { spoilText } from '../spoil.ts'

const MAIN = fileURLToPath(new URL('../../../../fastsockets/cli/main.js', import.meta.url))
const AT_ONCE = 8
const PIPELINED = 32
/** A connection ends at the first request that is no HTTP; one in so many is none. */
const BROKEN_ONE_IN = 200
const STATUS = /HTTP\/1\.1 (\d{3}) /g
const LEASE = '0123456789abcdef'

function someRequest(random: Random, lease: string): string {
  const name = spoilText(random, random.pick(['a/b', 'services/printer', 'inet:tcp:10.0.0.7:80']))
  const target = random.chance(0.8) ? encodeURIComponent(name.replace(/[\ud800-\udfff]/g, 'x')) : 'a%zz'
  const record = { lease, record: { endpoint: 'e', labels: { a: 'b' } }, takeover: true, ownerKey: 'k' }
  const [method, path, body] = random.pick([
    ['PUT', `/v1/names/${target}`, JSON.stringify(record)],
    ['PUT', `/v1/names/a`, spoilText(random, JSON.stringify(record))],
    ['GET', `/v1/names/${target}`, ''],
    ['DELETE', `/v1/names/${target}`, ''],
    ['GET', `/v1/names?prefix=${target}&limit=${random.within(-1, 2000)}`, ''],
    ['GET', `/v1/leases?after=${target}`, ''],
    ['POST', '/v1/leases', spoilText(random, '{"ttlMs":1000}')],
    ['POST', `/v1/leases/${random.pick([lease, LEASE])}/keepalive`, ''],
    ['DELETE', `/v1/leases/${LEASE}`, ''],
    ['GET', '/healthz', ''],
    // One that begins would be the last on its connection.
    ['POST', '/v1/watch', '{"names":7}'],
    ['PATCH', '/v1/names/a', ''],
  ])
  const sent = Buffer.from(body)
  const length =
    sent.length === 0 ? '' : `content-type: application/json\r\ncontent-length: ${sent.length}\r\n`
  return `${method} ${path} HTTP/1.1\r\nhost: x\r\n${length}\r\n${sent.toString('latin1')}`
}

/** Says some requests at once, and resolves with the statuses; fewer if the daemon has hung up. */
function ask(socketPath: string, text: string, count: number): Promise<number[]> {
  return new Promise(resolve => {
    const statuses: number[] = []
    let rest = ''
    const socket: Socket = connect(socketPath, () => socket.write(text, 'latin1'))
    const end = (): void => {
      socket.destroy()
      resolve(statuses)
    }
    socket.on('error', end).on('close', end)
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      const whole = rest + chunk
      let last = 0
      for (const match of whole.matchAll(STATUS)) {
        statuses.push(Number(match[1]))
        last = match.index + match[0].length
      }
      rest = whole.slice(Math.max(last, whole.length - STATUS.source.length))
      if (statuses.length >= count) end()
    })
  })
}

export const nameService: Kind = {
  name: 'name-service',
  what: 'HTTP requests to a daemon of the name service',
  reaches: ['200', '201', '400', '404', '405', 'hung up'],
  async open() {
    const folder = mkdtempSync(join(tmpdir(), 'fuzz-named-'))
    const socketPath = join(folder, 's')
    const args = ['named', '--store-kind', 'memory', '--socket-path', socketPath]
    const daemon: ChildProcess = spawn(process.execPath, [MAIN, ...args], {
      env: plainEnvironment(),
      stdio: 'pipe',
    })
    let log = ''
    for (const stream of [daemon.stdout, daemon.stderr])
      stream?.setEncoding('utf8').on('data', text => {
        log += text
      })
    await eventually('the daemon', () => log.includes('"ready"'))
    const client = new NameClient({ address: `unix:${socketPath}` })
    return {
      async attack({ random, inputs, count, wrong }: Attack) {
        const { id } = await client.api.grant(600_000)
        let left = inputs
        const work = async (): Promise<void> => {
          while (left > 0) {
            const asked = Math.min(PIPELINED, left)
            left -= asked
            const requests = Array.from({ length: asked }, () => someRequest(random, id))
            const isBroken = random.within(1, Math.ceil(BROKEN_ONE_IN / PIPELINED)) === 1
            if (isBroken)
              requests[random.within(0, asked - 1)] = random.bytes(random.within(1, 200)).toString('latin1')
            const statuses = await withWatchdog('answers', ask(socketPath, requests.join(''), asked))
            for (const status of statuses) {
              count(String(status))
              if (status === 500) wrong('500')
            }
            if (statuses.length < asked) count('hung up')
            if (statuses.length < asked && !isBroken) wrong(`${statuses.length} of ${asked} were answered`)
          }
        }
        await Promise.all(Array.from({ length: AT_ONCE }, work))
        await client.api.revoke(id)
        if (log.includes('internal error')) wrong(log.slice(log.indexOf('internal error'), 500))
      },
      async honest() {
        const { id } = await client.api.grant(600_000)
        await client.api.register('honest', id, { endpoint: 'e' })
        const { entry } = await client.api.lookUp('honest')
        await client.api.revoke(id)
        if (entry?.record.endpoint !== 'e' || daemon.exitCode !== null)
          throw new Error(`an honest name: ${log}`)
      },
      async close() {
        await client.close()
        daemon.kill()
        await new Promise(resolve => daemon.once('close', resolve))
        rmSync(folder, { recursive: true, force: true })
      },
    }
  },
}
