/** Names that programs choose for their endpoints, by way of the name service. */
import type { NameClient, NewRegistration, Problem, Registration } from '../nameservice/index.ts'
import { type Driver, openLog } from '../nic/index.ts'
import { clearTimeout, setTimeout } from '../nic/real-time.ts'
import { AmError, rangeError } from './errors.ts'
import { CONTROL_VERSION, decodeTag, encodeTag } from './rendezvous/control-messages.ts'
import { askAddress, isAlive } from './rendezvous/dialing.ts'
import {
  decodeName,
  type EndpointName,
  identityOf,
  rendezvousPath,
  thisHost,
} from './rendezvous/endpoint-name.ts'
import { decodeTcpAddress, encodeTcpAddress, parsePlace, type TcpAddress } from './rendezvous/tcp-address.ts'
import { threadNames } from './thread-names.ts'

const log = openLog('fastsockets:am:names')

/** Location of an endpoint. */
export interface Located {
  readonly target: EndpointName
  /** The tag to show the endpoint. */
  readonly tag: bigint
  /** Address for callers on other RDMA hosts. */
  readonly remote?: TcpAddress | undefined
}

/** Name of the driver whose addresses name endpoints. */
const TCP = 'tcp'
/** Longest time that opening an endpoint waits for its name; the client then goes on in the background. */
const PUBLISH_MS_MAX = 1000
/** Longest time that a map waits for the name service. */
const RESOLVE_MS_MAX = 1000
/** Claims of a name, if a dead endpoint holds it each time. */
const TRIES_MAX = 4

export interface Published {
  readonly name: string
  readonly endpoint: EndpointName
  readonly tag: bigint
  readonly drivers: readonly Driver[]
  /** Address for callers on other RDMA hosts, if there is one. */
  readonly remote?: TcpAddress | undefined
}

async function assertPublishable(name: string): Promise<void> {
  const { kindOf } = await import('../nameservice/index.ts')
  if (kindOf(name) === 'endpoint' && decodeName(name) === undefined) return
  throw rangeError(`nothing can be published as ${JSON.stringify(name)}: names are [a-z0-9._/-]{1,200}`)
}

/**
 * Publishes the name until the publication is closed. While the name service is unavailable, the client tries
 * again in the background. Rejects with `ERR_AM_NAME_HELD` if a living endpoint has the name, and with
 * `ERR_AM_NAME_REFUSED`.
 */
export async function publishName(published: Published): Promise<Publication> {
  await assertPublishable(published.name)
  const publication = new Publication(await threadNames(), published)
  await publication.begin()
  return publication
}

export class Publication {
  readonly #names: NameClient
  readonly #published: Published
  #registration: Registration | undefined
  #isClosed = false

  constructor(names: NameClient, published: Published) {
    this.#names = names
    this.#published = published
  }

  /** Resolves when the name is published, or when the client goes on in the background. */
  async begin(): Promise<void> {
    const claimed = this.#claim()
    claimed.catch(error => log('%s', error.message))
    const first = this.#registration
    const unanswered = first?.tried.then(() => (first.state === 'pending' ? undefined : claimed))
    let timer: NodeJS.Timeout | undefined
    const timeIsUp = new Promise<void>(resolve => {
      timer = setTimeout(resolve, PUBLISH_MS_MAX)
    })
    await Promise.race([claimed, unanswered ?? claimed, timeIsUp]).finally(() => clearTimeout(timer))
  }

  /** Deregisters the name. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#registration?.close()
  }

  /** Claims the name; waits as long as the name service is unavailable. */
  async #claim(): Promise<void> {
    for (let tries = 1; !this.#isClosed; tries++) {
      const error = await this.#register()
      if (error === undefined || this.#isClosed) return
      await this.#registration?.close()
      if (!isHeld(error)) throw refused(this.#published.name, error)
      if (tries === TRIES_MAX || !(await this.#removeDead())) throw this.#heldError()
    }
  }

  /** Resolves to the error that the name service answers, or to undefined. */
  async #register(): Promise<unknown> {
    const { name } = this.#published
    try {
      this.#registration = this.#names.register(recordOf(this.#published), {
        onState: (state, problem) => log('%s: %s %s', name, state, problem?.detail ?? ''),
      })
    } catch {
      // The name is valid, so another endpoint of this thread has it.
      throw this.#heldError()
    }
    return await this.#registration.registered.then(
      () => undefined,
      error => error,
    )
  }

  /**
   * Removes the name of a dead endpoint; false if the endpoint may be alive. Only the entry that was checked is
   * removed: if several endpoints want the name, one gets it.
   */
  async #removeDead(): Promise<boolean> {
    const { name } = this.#published
    const { api } = this.#names
    try {
      // Not from the cache, which may have an earlier holder.
      const { entry } = await api.lookUp(name, { timeoutMs: PUBLISH_MS_MAX })
      if (entry === undefined) return true
      const holder = decodeName(entry.record.endpoint)
      if (holder === undefined || holder.host !== thisHost() || (await isAlive(holder))) return false
      log('the owner of %s has ended: the name is taken over', name)
      await api.deregister(name, entry.lease, { timeoutMs: PUBLISH_MS_MAX })
    } catch (error) {
      // Another endpoint was faster, or the name service is unavailable: the next registration decides.
      log('%s: %s', name, (error as Error).message)
    }
    return true
  }

  #heldError(): AmError {
    return new AmError('ERR_AM_NAME_HELD', `${this.#published.name} is the name of another endpoint`)
  }
}

/**
 * Finds an endpoint by its own name, by an address where it listens, or by a name that it has published. `preferred`: the
 * caller's drivers.
 */
export async function locate(name: string, preferred: readonly Driver[]): Promise<Located> {
  const own = decodeName(name)
  if (own !== undefined) return { target: own, tag: 0n }
  const address = name.startsWith('tcp:') ? parsePlace(name) : undefined
  if (address !== undefined) return { target: await askAddress(address, preferred), tag: 0n }
  const { kindOf } = await import('../nameservice/index.ts')
  if (kindOf(name) !== 'endpoint')
    throw rangeError(`this is no name for an endpoint: ${JSON.stringify(name)}`)
  const found = await (await threadNames()).lookup(name, { timeoutMs: RESOLVE_MS_MAX })
  if (found.status === 'unavailable') {
    throw new AmError('ERR_AM_NO_NAME_SERVICE', `${name} cannot be found: the name service does not answer`)
  }
  const { endpoint = '', tag = '', drivers = [] } = found.entry?.record ?? {}
  const target = decodeName(endpoint)
  if (target === undefined) throw new AmError('ERR_AM_NO_SUCH_ENDPOINT', `no endpoint has published ${name}`)
  const addressOf = (isTcp: boolean): TcpAddress | undefined =>
    drivers
      .filter(driver => (driver.name === TCP) === isTcp)
      .map(({ address }) => decodeTcpAddress(Buffer.from(address, 'base64').toString('latin1')))
      .find(address => address !== undefined)
  const listening = addressOf(true)
  return {
    target: listening === undefined ? target : { ...target, address: listening },
    tag: decodeTag(tag),
    remote: addressOf(false),
  }
}

function recordOf({ name, endpoint, tag, drivers, remote }: Published): NewRegistration {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const here = base64(rendezvousPath(endpoint.thread))
  // Without an address for other hosts, a driver between hosts has the address of this host.
  const addressOf = (driver: Driver): string => {
    const elsewhere = driver.needsAddress ? endpoint.address : remote
    return driver.reach !== 'network' || elsewhere === undefined ? here : base64(encodeTcpAddress(elsewhere))
  }
  return {
    name,
    endpoint: identityOf(endpoint),
    host: endpoint.host,
    tag: encodeTag(tag),
    version: CONTROL_VERSION,
    pid: process.pid,
    drivers: drivers
      .filter(({ reach }) => reach !== 'thread')
      .map(driver => ({ name: driver.name, address: addressOf(driver) })),
    ...(process.geteuid === undefined ? {} : { uid: process.geteuid() }),
  }
}

function isHeld(error: unknown): boolean {
  return (error as { problem?: Problem }).problem?.type.endsWith(':name-held') === true
}

function refused(name: string, cause: unknown): Error {
  if ((cause as { code?: string }).code !== 'ERR_NAMES_REFUSED') return cause as Error
  return new AmError('ERR_AM_NAME_REFUSED', `${name} cannot be published: ${(cause as Error).message}`, {
    cause,
  })
}
