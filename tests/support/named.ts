/** The real daemon as a process, and plain HTTP to it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { NameClient, type NameClientOptions } from '../../nameservice/index.ts'
import { type Exit, plainEnvironment } from './child.ts'
import { deathbound } from './deathbound.ts'
import { eventually, withWatchdog } from './until.ts'

export const MAIN = fileURLToPath(new URL('../../fastsockets/cli/main.js', import.meta.url))

export interface NamedOptions {
  /** Flags beyond socket and store. */
  readonly args?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** Flags of Node itself. */
  readonly execArgv?: readonly string[]
  readonly uid?: number
  /** Where socket and store are; a new folder if not given. */
  readonly folder?: string
}

export interface HttpReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Empty if it was no JSON. */
  readonly json: Loose
}

/** JSON that a test looks into without saying first what it should be. */
export interface Loose {
  readonly [member: string]: Loose
}

export interface HttpQuestion {
  readonly body?: unknown
  /** Sent as it is instead of `body`. */
  readonly text?: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
}

/** An empty folder for as long as the test runs. */
export function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'named-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export class Named {
  readonly folder: string
  readonly #test: Test
  readonly #options: NamedOptions
  readonly #agent = new Agent({ keepAlive: true })
  #process: ChildProcess | undefined
  #exited: Promise<Exit> | undefined
  #log = ''
  #stderr = ''

  /** Ready, and killed at the latest when the test ends. */
  static async start(t: Test, options: NamedOptions = {}): Promise<Named> {
    const named = new Named(t, options)
    await named.up()
    return named
  }

  constructor(t: Test, options: NamedOptions = {}) {
    this.#test = t
    this.#options = options
    this.folder = options.folder ?? temporaryFolder(t)
    t.teardown(async () => {
      this.#agent.destroy()
      await this.kill()
    })
  }

  get socketPath(): string {
    return join(this.folder, 'named.sock')
  }

  get storePath(): string {
    return join(this.folder, 'store')
  }

  get address(): string {
    return `unix:${this.socketPath}`
  }

  get pid(): number {
    return this.#process?.pid as number
  }

  /** Everything it has logged, over all its lives. */
  get log(): string {
    return this.#log
  }

  get stderr(): string {
    return this.#stderr
  }

  /** Starts the process, and does not wait until it is ready. `logTo`: a descriptor, instead of `log`. */
  spawn(logTo?: number): Promise<Exit> {
    const { args = [], env = {}, execArgv = [], uid } = this.#options
    const flags = ['--socket-path', this.socketPath, '--store-path', this.storePath, ...args]
    const [program, ...words] = deathbound('KILL', [process.execPath, ...execArgv, MAIN, 'named', ...flags])
    const child = spawn(program, words, {
      env: { ...plainEnvironment(), ...env },
      stdio: ['ignore', logTo ?? 'pipe', 'pipe'],
      ...(uid === undefined ? {} : { uid, gid: uid }),
    })
    child.stdout?.setEncoding('utf8').on('data', text => {
      this.#log += text
    })
    child.stderr?.setEncoding('utf8').on('data', text => {
      this.#stderr += text
    })
    this.#process = child
    const exited = once(child, 'close').then(([code, signal]) => ({ code, signal }))
    this.#exited = exited
    return exited
  }

  async up(): Promise<void> {
    const exited = this.spawn()
    const isReady = eventually('the daemon', async () => {
      if (this.#process?.exitCode !== null) throw new Error(`the daemon ended: ${this.#stderr}`)
      return (await this.ask('GET', '/readyz').catch(() => undefined))?.status === 200
    })
    await Promise.race([isReady, exited.then(() => isReady)])
    // The port is only in the log, which comes by another way.
    if (this.#options.args?.includes('--tcp-listen')) {
      await eventually('the log', () => this.messages().some(({ msg }) => msg === 'ready'))
    }
  }

  /** How it ended by itself, or by what `signal` makes it do. */
  async end(signal?: NodeJS.Signals): Promise<Exit> {
    if (signal !== undefined) this.#process?.kill(signal)
    return await withWatchdog('the end of the daemon', this.#exited as Promise<Exit>)
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal)
  }

  async kill(): Promise<void> {
    if (this.#process === undefined) return
    this.#process.kill('SIGKILL')
    await this.#exited
    this.#process = undefined
  }

  /** The messages that it has logged, as JSON. */
  messages(): { level: string; msg: string; [field: string]: unknown }[] {
    const lines = this.#log.split('\n').slice(0, -1)
    return lines.map(line => JSON.parse(line))
  }

  client(options: NameClientOptions = {}): NameClient {
    const client = new NameClient({ address: this.address, ...options })
    this.#test.teardown(() => client.close())
    return client
  }

  ask(method: string, path: string, { body, text, headers }: HttpQuestion = {}): Promise<HttpReply> {
    const payload = text ?? (body === undefined ? undefined : JSON.stringify(body))
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const length = payload === undefined ? {} : { 'content-length': String(Buffer.byteLength(payload)) }
    return askHttp({
      socketPath: this.socketPath,
      agent: this.#agent,
      method,
      path,
      headers: { ...type, ...length, ...headers },
      payload,
    })
  }

  /** A lease that lasts as long as the test. */
  async grant(ttlMs = 600_000): Promise<string> {
    const { json } = await this.ask('POST', '/v1/leases', { body: { ttlMs } })
    return String(json.id)
  }

  register(
    name: string,
    lease: string,
    record: object = { endpoint: 'e' },
    more: object = {},
  ): Promise<HttpReply> {
    return this.ask('PUT', `/v1/names/${encodeURIComponent(name)}`, { body: { lease, record, ...more } })
  }

  lookUp(name: string): Promise<HttpReply> {
    return this.ask('GET', `/v1/names/${encodeURIComponent(name)}`)
  }

  async names(prefix = ''): Promise<string[]> {
    const { entries } = await this.client().list(prefix)
    return entries.map(({ name }) => name)
  }
}

interface HttpCall {
  readonly socketPath?: string
  readonly host?: string
  readonly port?: number
  readonly localAddress?: string
  readonly agent?: Agent
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly payload?: string | Buffer | undefined
}

export function askHttp({ payload, ...options }: HttpCall): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    const call = request(options, response => {
      let text = ''
      if (response.headers['content-type'] === 'text/event-stream') {
        // It has no end; RawWatch reads it.
        response.destroy()
        return resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: {} })
      }
      response.setEncoding('utf8')
      response.on('data', chunk => {
        text += chunk
      })
      response.once('error', reject)
      response.once('end', () => {
        const { statusCode = 0, headers } = response
        const isJson = text !== '' && /json/.test(headers['content-type'] ?? '')
        resolve({ status: statusCode, headers, text, json: isJson ? JSON.parse(text) : {} })
      })
    })
    call.once('error', (error: NodeJS.ErrnoException) => {
      // A connection that was kept from before may end at the very moment at which it is used again.
      const isStale = call.reusedSocket && (error.code === 'EPIPE' || error.code === 'ECONNRESET')
      if (isStale && options.method === 'GET') askHttp({ payload, ...options }).then(resolve, reject)
      else reject(error)
    })
    call.end(payload)
  })
}

/** Some events of a watch, as they come over the wire. */
export class RawWatch {
  readonly events: { event: string; id: string | undefined; data: Record<string, unknown> }[] = []
  status = 0
  isEnded = false
  readonly #call: ReturnType<typeof request>
  #rest = ''

  constructor(t: Test, named: { socketPath: string }, query = '', headers: Record<string, string> = {}) {
    const path = `/v1/watch${query}`
    this.#call = request({ socketPath: named.socketPath, path, headers, agent: false }, response => {
      this.status = response.statusCode ?? 0
      response.setEncoding('utf8').on('data', text => this.#read(text))
      response.once('error', () => {})
      response.once('close', () => {
        this.isEnded = true
      })
    })
    this.#call.once('error', () => {
      this.isEnded = true
    })
    this.#call.end()
    t.teardown(() => this.close())
  }

  close(): void {
    this.#call.destroy()
  }

  /** `+name` and `-name`, in order. */
  get changes(): string[] {
    const changes = this.events.filter(({ event }) => event === 'change')
    return changes.map(({ data }) => `${data.type === 'put' ? '+' : '-'}${data.name}`)
  }

  get lastId(): string {
    return this.events.findLast(({ id }) => id !== undefined)?.id ?? ''
  }

  async started(): Promise<this> {
    await eventually(
      'the watch',
      () => this.events[0]?.event === 'hello' || (this.isEnded && this.status !== 200),
    )
    return this
  }

  #read(text: string): void {
    const blocks = (this.#rest + text).split('\n\n')
    this.#rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      )
      const data = fields.get('data')
      if (data === undefined) continue
      this.events.push({ event: fields.get('event') ?? '', id: fields.get('id'), data: JSON.parse(data) })
    }
  }
}
