/**
 * Two network namespaces, each with one end of a veth pair: two hosts of one network, whose processes share no abstract
 * unix sockets and no loopback. Needs root and iproute2.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const CARRIER_MS_MAX = 10_000
const NEAR_PORT = 'near'
const FAR_PORT = 'far'

interface Test {
  teardown(end: () => unknown): void
}

/** Why there can be no namespaces here, or false. */
export function noTwoHosts(): string | false {
  if (process.getuid?.() !== 0) return 'needs root, to make network namespaces'
  const name = `fs-h-${process.pid}-try`
  const made = spawnSync('ip', ['netns', 'add', name])
  if (made.error !== undefined) return `needs the program ip: ${made.error.message}`
  if (made.status !== 0) return `no network namespace can be made: ${made.stderr}`
  ip('netns', 'del', name)
  return false
}

export interface Host {
  readonly namespace: string
  readonly device: string
  readonly address: string
}

let count = 0

/** Joined by a cable. Removed when the test ends. */
export function makeTwoHosts(t: Test): { near: Host; far: Host } {
  const [near, far] = newHosts(t)
  ip(
    ...['link', 'add', near.device, 'netns', near.namespace],
    ...['type', 'veth', 'peer', 'name', far.device, 'netns', far.namespace],
  )
  startDevices(near, far)
  return { near, far }
}

/** A switch between two hosts, with a port for each. */
export interface Switch {
  readonly namespace: string
  readonly nearPort: string
  readonly farPort: string
}

/** Joined by a switch, which drops longer frames than `mtu` without a word. Removed when the test ends. */
export function makeSwitchedHosts(t: Test, mtu = 1500): { near: Host; far: Host; between: Switch } {
  return joinHosts(t, mtu, namespace => {
    ip('-n', namespace, 'link', 'add', 'switch', 'type', 'bridge')
    ip('-n', namespace, 'link', 'set', 'switch', 'up')
    for (const port of [NEAR_PORT, FAR_PORT]) ip('-n', namespace, 'link', 'set', port, 'master', 'switch')
  })
}

/** Joined by nothing: a program in the namespace between them has to forward from port to port. */
export function makeHostsApart(t: Test): { near: Host; far: Host; between: Switch } {
  return joinHosts(t, 1500, namespace => {
    // The kernel between them says nothing by itself.
    for (const port of [NEAR_PORT, FAR_PORT]) ip('-n', namespace, 'link', 'set', port, 'arp', 'off')
  })
}

function joinHosts(
  t: Test,
  mtu: number,
  join: (namespace: string) => void,
): { near: Host; far: Host; between: Switch } {
  const [near, far] = newHosts(t)
  const namespace = `${near.namespace}s`
  ip('netns', 'add', namespace)
  t.teardown(() => void spawnSync('ip', ['netns', 'del', namespace]))
  const connect = ({ namespace: host, device }: Host, port: string): void => {
    ip('link', 'add', device, 'netns', host, 'type', 'veth', 'peer', 'name', port, 'netns', namespace)
    ip('-n', namespace, 'link', 'set', port, 'mtu', String(mtu), 'up')
  }
  connect(near, NEAR_PORT)
  connect(far, FAR_PORT)
  join(namespace)
  startDevices(near, far)
  return { near, far, between: { namespace, nearPort: NEAR_PORT, farPort: FAR_PORT } }
}

function newHosts(t: Test): readonly [Host, Host] {
  const number = count++
  const hostOf = (letter: string, last: number): Host => ({
    namespace: `fs-h-${process.pid}-${number}${letter}`,
    device: `fs${letter}${process.pid % 100_000}-${number}`,
    address: `10.99.0.${last}`,
  })
  const hosts = [hostOf('a', 1), hostOf('b', 2)] as const
  t.teardown(() => {
    for (const { namespace } of hosts) spawnSync('ip', ['netns', 'del', namespace])
  })
  for (const { namespace } of hosts) ip('netns', 'add', namespace)
  return hosts
}

function startDevices(...hosts: readonly Host[]): void {
  for (const { namespace, device, address } of hosts) {
    ip('-n', namespace, 'addr', 'add', `${address}/24`, 'dev', device)
    ip('-n', namespace, 'link', 'set', 'lo', 'up')
    ip('-n', namespace, 'link', 'set', device, 'up')
  }
  // Only a running device's address counts, and the kernel notices a carrier somewhat later.
  for (const host of hosts) awaitCarrier(host)
}

/**
 * The switch passes on frames to `port` at that rate, and drops those for which its queue of 16 KiB has no room: delay,
 * jitter and loss, as behind a slow link.
 */
export function limitRate({ namespace }: Switch, port: string, megabitPerSecond: number): void {
  const rate = `${megabitPerSecond}mbit`
  execFileSync('tc', [
    ...['-n', namespace, 'qdisc', 'add', 'dev', port, 'root'],
    ...['tbf', 'rate', rate, 'burst', '4kb', 'limit', '16kb'],
  ])
}

/** The switch forwards nothing any more, and neither host's device notices. */
export function blackHole({ namespace, nearPort }: Switch): void {
  ip('-n', namespace, 'link', 'set', nearPort, 'nomaster')
}

/** The cable of that host is pulled: its kernel drops everything, and says nothing. */
export function cut({ namespace, device }: Host): void {
  ip('-n', namespace, 'link', 'set', device, 'down')
}

export function mend({ namespace, device }: Host): void {
  ip('-n', namespace, 'link', 'set', device, 'up')
}

export function setMtu({ namespace, device }: Host, mtu: number): void {
  ip('-n', namespace, 'link', 'set', device, 'mtu', String(mtu))
}

/** A key file that only this user may read, unless `mode` says otherwise. Removed with the test. */
export function keyFileOf(t: Test, key: string | Buffer = Buffer.alloc(40, 'k'), mode = 0o600): string {
  const folder = mkdtempSync(join(tmpdir(), 'key-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'key')
  writeFileSync(path, key, { mode })
  return path
}

function awaitCarrier({ namespace, device }: Host): void {
  const deadlineMs = performance.now() + CARRIER_MS_MAX
  const show = ['-n', namespace, 'link', 'show', device]
  while (!/state UP/.test(execFileSync('ip', show, { encoding: 'utf8' })))
    if (performance.now() > deadlineMs) throw new Error(`${device} has no carrier`)
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args)
}
