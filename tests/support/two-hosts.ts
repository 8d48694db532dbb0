/**
 * Two network namespaces, each with one end of a veth pair: two hosts of one network, whose processes share no abstract
 * unix sockets and no loopback. Needs root and iproute2.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child, plainEnvironment } from './child.ts'

const CARRIER_MS_MAX = 10_000

interface Test {
  teardown(end: () => Promise<void> | void): void
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

/** Removed when the test ends. */
export function makeTwoHosts(t: Test): { near: Host; far: Host } {
  const number = count++
  const hostOf = (letter: string, last: number): Host => ({
    namespace: `fs-h-${process.pid}-${number}${letter}`,
    device: `fs${letter}${process.pid % 100_000}-${number}`,
    address: `10.99.0.${last}`,
  })
  const near = hostOf('a', 1)
  const far = hostOf('b', 2)
  t.teardown(() => {
    for (const { namespace } of [near, far]) spawnSync('ip', ['netns', 'del', namespace])
  })
  for (const { namespace } of [near, far]) ip('netns', 'add', namespace)
  ip(
    ...['link', 'add', near.device, 'netns', near.namespace],
    ...['type', 'veth', 'peer', 'name', far.device, 'netns', far.namespace],
  )
  for (const { namespace, device, address } of [near, far]) {
    ip('-n', namespace, 'addr', 'add', `${address}/24`, 'dev', device)
    ip('-n', namespace, 'link', 'set', 'lo', 'up')
    ip('-n', namespace, 'link', 'set', device, 'up')
  }
  // Only a running device's address counts, and the kernel notices a carrier somewhat later.
  for (const host of [near, far]) awaitCarrier(host)
  return { near, far }
}

/** The cable of that host is pulled: its kernel drops everything, and says nothing. */
export function cut({ namespace, device }: Host): void {
  ip('-n', namespace, 'link', 'set', device, 'down')
}

export function mend({ namespace, device }: Host): void {
  ip('-n', namespace, 'link', 'set', device, 'up')
}

/** Runs a fixture on that host. */
export function childOn(
  t: { teardown(end: () => Promise<void>): void },
  { namespace }: Host,
  fixture: URL,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Child {
  return new Child(t, fixture, args, {
    execPath: 'ip',
    execArgv: ['netns', 'exec', namespace, process.execPath],
    env: { ...plainEnvironment(), ...env },
  })
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
