/**
 * All that `fastsockets/register` loads: wrappers of the methods by which a program begins to use sockets. The first call
 * of one of them loads light-phase.ts or the rest, synchronously (install.ts). A program without sockets loads no more than this.
 *
 * - `net.Socket.prototype.connect`, and of `net.Server.prototype` `close` and `_listen2`, which is Node's own name for "bind and listen now"
 * - `net.Socket.prototype._getpeername`, `_getsockname`, `resetAndDestroy`: of sockets that another process has bridged
 * - `process.binding`, by which a program may get the parser of http (consumed-handles.ts)
 * - `send` of this process and of its children, `spawn` of its children (sent-sockets.ts)
 * - the methods of Node's UDP handles, once there is one (datagram/udp-handles.ts)
 * - `createHook` of `node:async_hooks`, the one replaced export: hides our own resources from hooks (own-hooks.ts)
 */
import { AsyncResource } from 'node:async_hooks'
import diagnostics from 'node:diagnostics_channel'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import { watching } from '../datagram/udp-notes.ts'
import { watchDatagrams } from '../datagram/watching.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { define } from '../host/define.ts'
import { hideFromHooks } from '../host/own-hooks.ts'
import { tryLoad } from '../host/try-load.ts'
import '../host/kept-globals.ts'
import '../../nic/real-time.ts'
import { makeHidden } from '../../nic/own-resources.ts'
import { isOwn } from '../../nic/own-sockets.ts'
import { type PolicySettings, policySettings, providePolicySettings } from '../../nic/policy-source.ts'
import { startPhase } from '../host/start-phase.ts'
import { DATAGRAMS_VARIABLE, START_VARIABLE } from '../policy/start-variable.ts'
import { entries } from './entries.ts'
import { leaveMark, removeMark, startLight } from './light-start.ts'
import type { Child, Send, Sender } from './sent-sockets.ts'

type Rest = typeof import('./install.ts')
type Light = typeof import('./light-phase.ts')
type Method = (this: unknown, ...args: unknown[]) => unknown

const require = createRequire(import.meta.url)

/** Set on `net` once this thread is relinked: the first copy of this package, whatever others are loaded. */
const INSTALLED = Symbol.for('fastsockets.installed')
const PACKAGE = '../../../package.json'

interface Copy {
  readonly version: string
  load(): Rest | undefined
}

const own: Copy = {
  get version() {
    return (require(PACKAGE) as { version: string }).version
  },
  load: () => load(),
}

/** What is loaded keeps no value of the program's AsyncLocalStorage. */
const scope = new AsyncResource('FASTSOCKETS')
let rest: Rest | undefined
let isLoaded = false
let isWrapped = false
/** Sockets are Node's own until TCP has cost enough. */
let isLight = false
/** Counts that; loaded with the first socket. */
let light: Light | undefined

/** Relinks this thread, once. Never throws. With FASTSOCKETS_DISABLE nothing is wrapped until the program imports `fastsockets`. */
export function relink(): void {
  if (INSTALLED in net) return warnOfOtherVersion()
  Object.defineProperty(net, INSTALLED, { value: own })
  try {
    if (!isDisabled()) wrapAll()
  } catch (error) {
    warn(error)
  }
}

function installed(): Partial<Copy> {
  return (net as unknown as { [INSTALLED]: Partial<Copy> })[INSTALLED]
}

/** The rest of the copy that has relinked this thread; undefined if that is this one. */
export function firstCopy(): Rest | undefined {
  return installed() === own ? undefined : installed().load?.()
}

function warnOfOtherVersion(): void {
  const { version = 'of another release' } = installed()
  if (version === own.version) return
  process.emitWarning(
    `fastsockets ${version} has relinked this thread; ${own.version}, which was loaded later, uses it`,
    { code: 'FASTSOCKETS_TWO_VERSIONS' },
  )
}

function isDisabled(): boolean {
  if (!Object.keys(process.env).some(name => name.startsWith('FASTSOCKETS_'))) return false
  const environment = require('../host/environment.ts') as typeof import('../host/environment.ts')
  environment.warnOfUnknownVariables()
  return environment.isDisabled()
}

function wrapAll(): void {
  isWrapped = true
  hideFromHooks()
  isLight = startLight()
  wrap(net.Socket.prototype, 'connect', handleConnect)
  wrap(net.Server.prototype, '_listen2', handleListen)
  wrap(net.Server.prototype, 'close', handleClose)
  if (isLight) wrap(net.Socket.prototype, '_writeGeneric', handleWrite)
  wrap(net.Socket.prototype, '_getpeername', isUnnamedPipe)
  wrap(net.Socket.prototype, '_getsockname', isUnnamedPipe)
  wrap(net.Socket.prototype, 'resetAndDestroy', isUnnamedPipe)
  watchBinding()
  watchSending()
  watchUdp()
  providePolicySettings(loadForSettings)
  syncBuiltinESMExports()
}

/** `send` of this process and of its future children. */
function watchSending(): void {
  const sentSockets = () => require('./sent-sockets.ts') as typeof import('./sent-sockets.ts')
  const { send } = process
  // In a worker thread `send` only throws, and Node marks it `disabled`.
  if (send !== undefined && !('disabled' in send))
    sentSockets().wrapSend(process as unknown as Sender, send as unknown as Send)
  diagnostics.subscribe('child_process', message =>
    tryLoad(sentSockets)?.watchChild((message as { process: Child }).process),
  )
}

/** Datagrams load the rest once the kernel's road has cost as much, whatever connections do; with `start: fast` the first socket does. */
function watchUdp(): void {
  const { env } = process
  if (env[DATAGRAMS_VARIABLE] === 'kernel') return
  if (env[START_VARIABLE] === 'fast') watching.onBound = () => void load()
  else {
    watching.onLocal = () => lightPhase()?.noteDatagram()
    if (!isLight) leaveMark()
  }
  watchDatagrams()
}

/** Undefined if it cannot be loaded now. */
function lightPhase(): Light | undefined {
  if (light === undefined) {
    light = tryLoad(() => require('./light-phase.ts') as Light)
    // In a program without a first phase only datagrams are counted.
    if (isLight) light?.beginLightPhase(() => void load())
    else light?.awaitPrice(() => void load())
  }
  return light
}

/** Loads the rest if `isFor` says so, then calls the method of `entries`. */
function wrap(
  owner: object,
  name: keyof typeof entries,
  isFor: (receiver: unknown, args: readonly unknown[]) => boolean,
): void {
  const original = (owner as Record<string, Method | undefined>)[name]
  if (original === undefined) return
  entries[name] = original
  define(owner, name, function (this: unknown, ...args: unknown[]): unknown {
    if (!isLoaded && isFor(this, args)) load()
    return (entries[name] as Method).apply(this, args)
  })
}

/** Loads the rest and relinks the thread with it. A failure leaves all sockets on TCP. */
export function load(): Rest | undefined {
  if (isLoaded || installed() !== own) return rest
  isLoaded = true
  try {
    if (!isWrapped) wrapAll()
    makeHidden(() => scope.runInAsyncScope(install))
  } catch (error) {
    warn(error)
  }
  return rest
}

/** Active messages ask for settings of a policy, which own-policy.ts knows once it is loaded. */
function loadForSettings(): PolicySettings {
  providePolicySettings(() => ({}))
  load()
  return policySettings()
}

function warn(error: unknown): void {
  process.emitWarning(`everything stays on TCP: ${(error as Error | undefined)?.message}`, {
    code: 'FASTSOCKETS_NOT_STARTED',
  })
}

function install(): void {
  rest = require('./install.ts') as Rest
  rest.install()
  removeMark()
  for (const { server, args, scope: own } of light?.endLightPhase() ?? [])
    own.runInAsyncScope(() => rest?.publishLate(server, args))
  light?.closeLeftPorts()
  if (startPhase.wasLight) rest.showOlder()
}

function handleConnect(socket: unknown, args: readonly unknown[]): boolean {
  return (
    !isLight ||
    (!isOwn(socket as object) && (light ?? lightPhase())?.noteConnect(socket as FastSocket, args) === true)
  )
}

function handleListen(server: unknown, args: readonly unknown[]): boolean {
  return (
    !isLight || (!isOwn(server as object) && lightPhase()?.noteListening(server as net.Server, args) === true)
  )
}

function handleClose(server: unknown): boolean {
  if (isLight) light?.noteClosing(server as net.Server)
  return false
}

function handleWrite(socket: unknown, args: readonly unknown[]): boolean {
  ;(light ?? lightPhase())?.noteWrite(socket as FastSocket, args[0], args[1])
  return false
}

/** Whether a socket is over a pipe, which may be the far end of a bridge (bridge-names.ts). */
function isUnnamedPipe(socket: unknown): boolean {
  const { _handle: handle } = socket as { _handle?: { fd?: unknown; getpeername?: unknown } | null }
  return handle != null && handle.getpeername === undefined && typeof handle.fd === 'number'
}

/** Deprecated as it is, `process.binding` is the only public way to the class of the parser; Node 26 has none. */
function watchBinding(): void {
  const { binding } = process as { binding?: (name: string) => unknown }
  if (binding === undefined) return
  define(process, 'binding', (name: string): unknown => {
    const found = binding.call(process, name)
    if (name === 'http_parser') load()?.noteParser(found)
    return found
  })
}
