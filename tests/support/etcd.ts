/** A real etcd for a test: Debian's etcd-server, one member, on ports of its own. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { deathbound } from './deathbound.ts'
import { eventually } from './until.ts'

/** Why there is no etcd, or undefined. */
export function etcdAbsence(): string | undefined {
  return spawnSync('etcd', ['--version']).error === undefined
    ? undefined
    : 'etcd is not installed (apt-get install etcd-server)'
}

export class Etcd {
  readonly endpoint: string
  readonly #folder = mkdtempSync(join(tmpdir(), 'named-etcd-'))
  readonly #peer: string
  readonly #args: Readonly<Record<string, string>>
  #process: ChildProcess | undefined

  /** Runs until the test ends. `args`: flags beyond those of every member; with `cert-file` and `key-file` it speaks TLS. */
  static async start(t: Test, args: Readonly<Record<string, string>> = {}): Promise<Etcd> {
    const etcd = new Etcd(await freePort(), await freePort(), args)
    t.teardown(async () => {
      await etcd.stop('SIGKILL')
      rmSync(etcd.#folder, { recursive: true, force: true })
    })
    await etcd.up()
    return etcd
  }

  private constructor(clientPort: number, peerPort: number, args: Readonly<Record<string, string>>) {
    this.#args = args
    this.endpoint = `${args['cert-file'] === undefined ? 'http' : 'https'}://127.0.0.1:${clientPort}`
    this.#peer = `http://127.0.0.1:${peerPort}`
  }

  async up(): Promise<void> {
    const args = {
      ...this.#args,
      'data-dir': join(this.#folder, 'data'),
      'listen-client-urls': this.endpoint,
      'advertise-client-urls': this.endpoint,
      'listen-peer-urls': this.#peer,
      'initial-advertise-peer-urls': this.#peer,
      'initial-cluster': `default=${this.#peer}`,
    }
    const flags = Object.entries(args).flatMap(([name, value]) => [`--${name}`, value])
    const [program, ...words] = deathbound('KILL', ['etcd', ...flags])
    this.#process = spawn(program, words, { stdio: 'ignore' })
    await eventually(
      'etcd',
      async () => (await this.ask('maintenance/status', {}).catch(() => undefined)) !== undefined,
    )
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const running = this.#process
    this.#process = undefined
    if (running === undefined || running.exitCode !== null) return
    running.kill(signal)
    await once(running, 'exit')
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process?.kill(signal)
  }

  /** Acts like a cluster that was set up anew. */
  forget(): void {
    rmSync(join(this.#folder, 'data'), { recursive: true, force: true })
  }

  /** Keeps a copy of what it holds, while it is stopped. */
  save(): void {
    cpSync(join(this.#folder, 'data'), join(this.#folder, 'saved'), { recursive: true })
  }

  /** Acts like a cluster restored from a backup. */
  restore(): void {
    this.forget()
    cpSync(join(this.#folder, 'saved'), join(this.#folder, 'data'), { recursive: true })
  }

  async ask(path: string, body: object): Promise<unknown> {
    const certificate = this.#args['cert-file']
    const options = {
      method: 'POST',
      agent: false,
      ...(certificate === undefined ? {} : { ca: readFileSync(certificate) }),
    } as const
    const ask = certificate === undefined ? request : tlsRequest
    const call = ask(`${this.endpoint}/v3/${path}`, options).end(JSON.stringify(body))
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    let text = ''
    for await (const chunk of response) text += chunk
    if (response.statusCode !== 200) throw new Error(`etcd: ${response.statusCode}`)
    return JSON.parse(text)
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}
