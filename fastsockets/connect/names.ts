/**
 * The name service, as sockets use it: listeners register the port of their bootstrap, and clients look it up. So a
 * stranger on a hashed port does no harm. The service is optional. Only a client waits for it: 5 ms, or longer until
 * the name service is ready to be asked (`lookUpMs`).
 */
import { threadNames } from '../../am/channels.ts'
import type { Registration } from '../../nameservice/index.ts'
import { isDaemonExpected } from '../../nameservice/socket-path.ts'
import { hostIdentity, openLog } from '../../nic/index.ts'
import { performance } from '../../nic/performance.ts'
import { clearTimeout, setTimeout, sleep } from '../../nic/real-time.ts'
import { VERSION } from '../bootstrap/bootstrap-layout.ts'
import { REMOTE_DRIVERS, remoteDrivers } from '../bootstrap/remote-hosts.ts'
import { allOwnAddresses } from '../host/addresses.ts'
import { keptGlobals } from '../host/kept-globals.ts'
import { allowsDriver, allowsUser } from '../policy/own-policy.ts'

const log = openLog('fastsockets:names')

/** The most that a connect waits for the name service once the hashed ports were asked. */
export const LOOK_UP_MS_MAX = 5
/**
 * The most that a starting program waits for the first answer: before its first line if relinked by `--import`, else in
 * its first connects.
 */
const PREPARE_MS_MAX = 100
/** Names per listener on a wildcard address. */
const NAMES_MAX = 16
/**
 * While there is no daemon, the thread looks for one again: first REPEAT_MS_MIN after a listener began, then after
 * doubling pauses up to REPEAT_MS_MAX.
 */
const REPEAT_MS_MIN = 1000
const REPEAT_MS_MAX = 5000
/**
 * With this key a restarted listener takes over its old name. One key serves all listeners: the listener that the
 * kernel has given the port is the owner of the name.
 */
const OWNER_KEY = 'fastsockets-inet'

export interface Announced {
  readonly address: string
  readonly port: number
  readonly family: 4 | 6
  readonly ipv6Only: boolean
}

interface Announcement extends Announced {
  readonly bootstrapPort: number
  readonly endpoint: string
  readonly registrations: Registration[]
}

const announcements = new Map<object, Announcement>()
let timer: NodeJS.Timeout | undefined
let repeatMs = REPEAT_MS_MIN
/** Resolves when earlier names are deregistered: a new registration, perhaps with another port, waits for it. */
let retracted: Promise<void> = Promise.resolve()

/**
 * Registers the bootstrap port of a listener with the name service, now or once there is one. `key` identifies the
 * listener.
 */
export function announce(key: object, listener: Announced, bootstrapPort: number, endpoint: string): void {
  const { address, port, family, ipv6Only } = listener
  const announcement = { address, port, family, ipv6Only, bootstrapPort, endpoint, registrations: [] }
  announcements.set(key, announcement)
  if (isDaemonExpected()) return void register(announcement)
  clearTimeout(timer)
  repeatMs = REPEAT_MS_MIN
  registerLater()
}

function registerLater(): void {
  timer = setTimeout(registerAll, repeatMs).unref()
  repeatMs = Math.min(2 * repeatMs, REPEAT_MS_MAX)
}

export function retract(key: object): void {
  const registrations = announcements.get(key)?.registrations ?? []
  announcements.delete(key)
  if (registrations.length === 0) return
  const closed = Promise.all([retracted, ...registrations.map(registration => registration.close())])
  // Drop the values: otherwise each promise would retain the one before it for ever.
  retracted = closed.then(() => undefined)
}

/** When the preparation ends at the latest, on the clock of `performance.now`; 0 if none is under way. */
let preparedMs = 0

/**
 * If there is a daemon: loads the client of the name service and asks once, which takes much longer than 5 ms. So the
 * first connect finds it ready. Never rejects; takes `PREPARE_MS_MAX` at most.
 */
export function prepareNames(): Promise<void> | undefined {
  return isDaemonExpected() ? askOnce() : undefined
}

async function askOnce(): Promise<void> {
  preparedMs = performance.now() + PREPARE_MS_MAX
  await inTime(findBootstrapPort('127.0.0.1', 1), PREPARE_MS_MAX)
  preparedMs = 0
}

/**
 * How long a connect waits for the name service now: longer while the preparation is under way, for which a program
 * relinked by `require` does not wait when it starts.
 */
export function lookUpMs(): number {
  return Math.max(LOOK_UP_MS_MAX, preparedMs - performance.now())
}

/**
 * The bootstrap port of the listener at `address` and `port`, on this host or on one that a driver reaches; undefined
 * if the name service does not know it.
 */
export async function findBootstrapPort(address: string, port: number): Promise<number | undefined> {
  if (!isDaemonExpected()) return undefined
  try {
    const names = await threadNames()
    const { entry } = await names.lookup(`inet:tcp:${address}:${port}`)
    if (entry === undefined) return undefined
    const { record } = entry
    const isHere = record.host === hostIdentity().toString('hex')
    // A record's own `uid` proves nothing. `owner` does: the daemon has asked the kernel.
    if (!isOfAllowedUser(entry.owner, isHere)) return undefined
    return isHere || record.drivers.some(({ name }) => REMOTE_DRIVERS.includes(name))
      ? record.port
      : undefined
  } catch (error) {
    log('%s port %d: %s', address, port, (error as Error).message)
    return undefined
  }
}

/** `owner`, as the daemon writes it: `uid:N` for a caller of its unix socket. An owner by token is on another host. */
function isOfAllowedUser(owner: string, isHere: boolean): boolean {
  const [, uid] = /^uid:(\d+)$/.exec(owner) ?? []
  return uid === undefined ? !isHere : allowsUser(Number(uid))
}

export async function inTime<T>(promise: Promise<T>, limitMs: number): Promise<T | undefined> {
  const isOver = new keptGlobals.AbortController()
  const late = sleep(limitMs, undefined, { signal: isOver.signal }).catch(() => undefined)
  return await Promise.race([promise, late]).finally(() => isOver.abort())
}

function registerAll(): void {
  if (announcements.size > 0 && !isDaemonExpected()) return registerLater()
  for (const announcement of announcements.values()) {
    if (announcement.registrations.length === 0) void register(announcement)
  }
}

async function register(announcement: Announcement): Promise<void> {
  const { port, bootstrapPort, endpoint } = announcement
  try {
    const names = await threadNames()
    await retracted
    if (![...announcements.values()].includes(announcement)) return
    const record = {
      endpoint,
      host: hostIdentity().toString('hex'),
      pid: process.pid,
      uid: process.geteuid?.() ?? 0,
      drivers: driverNames().map(name => ({ name, address: '' })),
      version: VERSION,
      port: bootstrapPort,
    }
    const options = { takeover: true, ownerKey: OWNER_KEY }
    for (const address of addressesOf(announcement)) {
      announcement.registrations.push(
        names.register({ ...record, name: `inet:tcp:${address}:${port}` }, options),
      )
    }
  } catch (error) {
    log('port %d: %s', port, (error as Error).message)
  }
}

function driverNames(): string[] {
  return [...(allowsDriver('shm') ? ['shm'] : []), ...remoteDrivers().map(({ name }) => name)]
}

function addressesOf({ address, ipv6Only }: Announcement): string[] {
  if (address === '0.0.0.0') return allOwnAddresses(4).slice(0, NAMES_MAX)
  if (address !== '::') return [address]
  return [...(ipv6Only ? [] : allOwnAddresses(4)), ...allOwnAddresses(6)].slice(0, NAMES_MAX)
}
