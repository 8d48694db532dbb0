/**
 * All links of an endpoint, and the services that it offers to them. Every client of the endpoint arrives at one handler: what
 * the VI paper calls ReceiveAny on one completion queue.
 */
import type { Clock, Timer } from '../../nic/clock.ts'
import { type Destination, Endpoint } from '../endpoint.ts'
import { EndpointChannel } from '../endpoint-channel.ts'
import { channelOf, type Message } from '../message.ts'
import type { Tag } from '../tag.ts'
import { callOnce } from './call-once.ts'
import { asBuffer } from './codec.ts'
import { Link, type LinkCall, lostError, type Opened } from './link.ts'
import { type RpcError, rpcError } from './rpc-error.ts'
import { DIRECTORY, FLAG_LAST, KIND_BITS, KIND_HELLO, RPC_HANDLER, SERVICES_MAX } from './rpc-layout.ts'

/** Time in which a peer must answer a greeting, and a question of its directory. */
const ANSWER_MS_MAX = 10_000

/** What an endpoint offers under a name. */
export interface Served {
  readonly name: string
  /** By number. */
  readonly methods: readonly string[]
  /** Runs within a handler: defers what runs programs' code. */
  accept(opened: Opened): LinkCall | undefined
}

/** A service as a peer offers it. */
export interface Found {
  readonly link: Link
  readonly service: number
  /** Numbers of the methods. */
  readonly methods: ReadonlyMap<string, number>
}

const tables = new WeakMap<Endpoint, Links>()

export class Links {
  /** The endpoint's time. */
  readonly clock: Clock
  private readonly tag: Tag
  private readonly links = new Map<EndpointChannel, Link>()
  private readonly services: (Served | undefined)[] = [undefined]

  static of(endpoint: Endpoint): Links {
    let links = tables.get(endpoint)
    if (links === undefined) {
      links = new Links(endpoint)
      tables.set(endpoint, links)
    }
    return links
  }

  private constructor(endpoint: Endpoint) {
    const { handlers, tag, clock } = Endpoint.tableOf(endpoint)
    if (!handlers.reserve(RPC_HANDLER, 'fastsockets/rpc', message => this.handle(message))) {
      throw rpcError('ERR_RPC_TAKEN', `the program has set handler ${RPC_HANDLER}, which RPC needs`)
    }
    this.tag = tag
    this.clock = clock
  }

  /** Offers a service. The returned function withdraws it; calls under way go on. */
  serve(served: Served): () => void {
    if (this.services.some(service => service?.name === served.name)) {
      throw rpcError('ERR_RPC_TAKEN', `the endpoint serves ${JSON.stringify(served.name)} already`)
    }
    if (this.services.length >= SERVICES_MAX)
      throw rpcError('ERR_RPC_EXHAUSTED', `there are ${SERVICES_MAX} services already`)
    const number = this.services.push(served) - 1
    return () => {
      this.services[number] = undefined
    }
  }

  /** The link to the peer of a destination, once the peer has said hello. */
  async linkTo({ channel, tag, peer }: Destination): Promise<Link> {
    if (peer === undefined) throw lostError(channel.owner.peerName, 'NO_SUCH_ENDPOINT')
    let link = this.links.get(channel)
    if (link === undefined) {
      link = this.add(channel, tag)
      link.sayHello(this.tag)
    }
    await within(this.clock, link.isReady, () => {
      const error = rpcError(
        'ERR_RPC_UNAVAILABLE',
        `${channel.owner.peerName} did not answer within ${ANSWER_MS_MAX} ms`,
      )
      link.fail(error)
      return error
    })
    return link
  }

  /** Asks the peer of a destination for a service. */
  async find(destination: Destination, name: string): Promise<Found> {
    const link = await this.linkTo(destination)
    const answer = callOnce(link, { service: DIRECTORY, method: 0, timeoutMs: 0, bytes: Buffer.from(name) })
    const noAnswer = (): RpcError =>
      rpcError('ERR_RPC_UNAVAILABLE', `${link.peerName} did not answer within ${ANSWER_MS_MAX} ms`)
    try {
      return foundIn(link, await within(this.clock, answer, noAnswer))
    } catch (error) {
      if ((error as RpcError).code !== 'ERR_RPC_UNIMPLEMENTED') throw error
      throw rpcError('ERR_RPC_UNIMPLEMENTED', `${link.peerName} does not serve ${JSON.stringify(name)}`)
    }
  }

  private add(channel: EndpointChannel, tag: Tag): Link {
    const link = new Link(channel, tag, this.clock, opened => this.accept(opened))
    this.links.set(channel, link)
    link.onOver(() => this.links.delete(channel))
    return link
  }

  private handle(message: Message): void {
    const channel = channelOf(message)
    if (!(channel instanceof EndpointChannel) || !message.isRequest) return
    let link = this.links.get(channel)
    if (link === undefined) {
      const { words } = message
      if (((words[0] as number) & KIND_BITS) !== KIND_HELLO) return // of a link that has failed
      const [low, high] = [words[2] as number, words[3] as number]
      link = this.add(channel, { low, high, isZero: low === 0 && high === 0 })
      link.sayHello(this.tag)
    }
    link.handleMessage(message)
  }

  private accept(opened: Opened): LinkCall | undefined {
    const { link, id, service, method, bytes, slot } = opened
    const served = this.services[service]
    if (served !== undefined && method >= 0 && method < served.methods.length) return served.accept(opened)
    link.release(slot)
    if (service === DIRECTORY) this.answerDirectory(link, id, asBuffer(bytes).toString())
    else refuseCall(opened, `there is no method ${method} of service ${service}`)
    return undefined
  }

  private answerDirectory(link: Link, id: number, name: string): void {
    const number = this.services.findIndex(service => service?.name === name)
    const { methods } = this.services[number] ?? {}
    if (methods === undefined) {
      const error = rpcError('ERR_RPC_UNIMPLEMENTED', `there is no service ${JSON.stringify(name)}`)
      return link.sendError(id, 0, error)
    }
    link.sendData(id, FLAG_LAST, Buffer.from(JSON.stringify({ service: number, methods })))
  }
}

export function refuseCall({ link, id }: Opened, why: string): void {
  link.sendError(id, 0, rpcError('ERR_RPC_UNIMPLEMENTED', why))
}

/** The answer of a stranger: every part is checked. */
function foundIn(link: Link, bytes: Uint8Array): Found {
  let answer: { service?: unknown; methods?: unknown } | null
  try {
    answer = JSON.parse(asBuffer(bytes).toString())
  } catch {
    answer = null
  }
  const { service, methods } = answer ?? {}
  if (
    typeof service !== 'number' ||
    !Array.isArray(methods) ||
    !methods.every(method => typeof method === 'string')
  ) {
    throw rpcError('ERR_RPC_PROTOCOL', `${link.peerName} describes a service in a way that cannot be read`)
  }
  return { link, service, methods: new Map(methods.map((method: string, number) => [method, number])) }
}

async function within<T>(clock: Clock, promise: Promise<T>, errorOf: () => Error): Promise<T> {
  let timer: Timer | undefined
  const isLate = new Promise<never>((_, reject) => {
    timer = clock.setTimeout(() => reject(errorOf()), ANSWER_MS_MAX)
  })
  return await Promise.race([promise, isLate]).finally(() => clock.clearTimeout(timer))
}
