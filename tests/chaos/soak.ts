/**
 * The same two processes for a very long time: round trips of 64 bytes, and one stream after the other, every byte
 * checked. What has been done is kept in a file after each session; a soak that was stopped goes on there.
 */
import { once } from 'node:events'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import net, { type Socket, transportOf } from '../../fastsockets/index.ts'
import { liveMemory } from '../support/garbage.ts'
import { patternAt } from '../support/pattern.ts'

const MESSAGE = 64
const PIECE = 64 * 1024
/** Live bytes of either process may swing by this much, over however long a soak. */
const GROWTH_MAX = 32 * 2 ** 20

export interface Done {
  roundTrips: number
  bytes: number
}

/** What the other process answers to the streaming side (soak-peer.ts). */
export interface Account {
  readonly bytes: number
  readonly wrongAt: number
  readonly live: number
}

export interface Ports {
  readonly echo: number
  readonly sink: number
}

export class SoakState {
  readonly done: Done = { roundTrips: 0, bytes: 0 }
  readonly #path: string | undefined

  /** Without a path nothing is kept. */
  constructor(path?: string) {
    this.#path = path
    if (path !== undefined && existsSync(path))
      Object.assign(this.done, JSON.parse(readFileSync(path, 'utf8')))
  }

  save(): void {
    if (this.#path === undefined) return
    const next = `${this.#path}.new`
    writeFileSync(next, `${JSON.stringify(this.done)}\n`)
    renameSync(next, this.#path)
  }
}

/** Throws whatever was found to be wrong. */
export class Soak {
  readonly #ports: Ports
  readonly #first = { own: 0, peer: 0 }

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /** Round trips over one connection, until there are `count` or `endMs` is reached; returns how many. */
  async exchange(count: number, endMs = Number.POSITIVE_INFINITY): Promise<number> {
    const socket = await connect(this.#ports.echo)
    const message = Buffer.alloc(MESSAGE)
    let waiting = MESSAGE
    let done = 0
    await new Promise<void>((resolve, reject) => {
      const ask = (): void => {
        message.fill(done & 0xff)
        waiting = MESSAGE
        socket.write(message)
      }
      socket.on('error', reject)
      socket.on('close', () => reject(new Error(`closed after ${done} round trips`)))
      socket.on('data', data => {
        waiting -= data.length
        if (waiting < 0 || data[0] !== (done & 0xff) || data.at(-1) !== (done & 0xff))
          return reject(new Error(`round trip ${done} brought something else`))
        if (waiting > 0) return
        done++
        if (done === count || (done % 256 === 0 && performance.now() >= endMs)) resolve()
        else ask()
      })
      ask()
    })
    socket.removeAllListeners('close').destroy()
    return done
  }

  /** One stream of so many bytes, or until `endMs`; returns how many. */
  async stream(bytes: number, endMs = Number.POSITIVE_INFINITY): Promise<number> {
    const socket = await connect(this.#ports.sink)
    let answer = ''
    socket.setEncoding('utf8').on('data', text => {
      answer += text
    })
    let hasEnded = false
    let goOn = (): void => {}
    socket.on('drain', () => goOn())
    const ended = once(socket, 'end').then(() => {
      hasEnded = true
      goOn()
    })
    let position = 0
    while (position < bytes && performance.now() < endMs && !hasEnded) {
      const length = Math.min(PIECE, bytes - position)
      const hasRoom = socket.write(patternAt(position, length))
      position += length
      if (!hasRoom) {
        await new Promise<void>(resolve => {
          goOn = resolve
        })
      }
    }
    socket.end()
    await ended
    const account = JSON.parse(answer) as Account
    if (account.bytes !== position || account.wrongAt >= 0)
      throw new Error(`sent ${position} bytes, the peer has ${account.bytes}, wrong at ${account.wrongAt}`)
    await this.#checkMemory(account.live)
    return position
  }

  async #checkMemory(peer: number): Promise<void> {
    const own = await liveMemory()
    if (this.#first.own === 0) Object.assign(this.#first, { own, peer })
    for (const [who, growth] of [
      ['this process', own - this.#first.own],
      ['the peer', peer - this.#first.peer],
    ] as const) {
      if (growth > GROWTH_MAX)
        throw new Error(`${who} holds ${growth} bytes more than after its first stream`)
    }
  }
}

async function connect(port: number): Promise<Socket> {
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const { transport, reason } = transportOf(socket)
  if (transport !== 'shm') throw new Error(`on ${transport}: ${reason?.code}`)
  return socket
}
