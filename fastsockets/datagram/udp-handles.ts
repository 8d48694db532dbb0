/**
 * Watches the sockets of `node:dgram` through the methods of Node's UDP handles (lib/dgram.js and src/udp_wrap.cc, Node 20 to 26):
 * names, events, callbacks and errors stay Node's own.
 *
 * Until a `Carrier` is given to a handle, its datagrams are only counted, and, without a rendezvous folder, only those of loopback addresses.
 */
import { nowMs } from '../../nic/real-time.ts'
import { reasonAgainstFolder, rendezvousFolder } from '../../nic/rendezvous/folder.ts'
import { define } from '../host/define.ts'
import { startPhase } from '../host/start-phase.ts'
import type { FallbackCode } from '../reasons.ts'
import {
  boundHandles,
  makeNotes,
  type Send,
  type Sender,
  type UdpHandle,
  type UdpNotes,
  udpNotesOf,
  watching,
} from './udp-notes.ts'

/** UV_UDP_REUSEADDR and, of libuv 1.49 and later, UV_UDP_REUSEPORT (uv.h). */
const REUSE_FLAGS = 4 | 64
/** Methods by which a program asks for what only the kernel can do. */
const OPTIONS = /TTL|Broadcast|Multicast|Membership/

type Method = (this: UdpHandle, ...args: never[]) => unknown

/** Node's own `send` of an IPv4 and of an IPv6 handle. */
export const nativeSends: { v4?: Send; v6?: Send } = {}
let isPatched = false
let hasFolder = false
let lookedAtMs = Number.NEGATIVE_INFINITY
/** Milliseconds between two looks for a rendezvous folder, which may be mounted or made late. */
const LOOK_MS = 2000

/** A new socket. */
export function watchSocket(socket: object): void {
  const handle = handleOf(socket)
  if (handle === undefined) return
  if (!isPatched) patch(handle)
  makeNotes(handle)
}

/** The handle of a socket; undefined once it is closed. */
export function handleOf(socket: object): UdpHandle | undefined {
  const state = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'state symbol')
  const { handle } = (state && (socket as Record<symbol, { handle?: UdpHandle | null }>)[state]) ?? {}
  return handle ?? undefined
}

export function keepSocketWithKernel(socket: object): void {
  const handle = handleOf(socket)
  if (handle !== undefined) keepWithKernel(handle, 'OWN_HANDLE')
}

/** Whether there is a rendezvous folder: any address may be that of a container which has it, too. */
export function mayBeOfContainer(): boolean {
  if (hasFolder) return true
  const atMs = nowMs()
  if (atMs - lookedAtMs < LOOK_MS) return false
  lookedAtMs = atMs
  // To ask for the policy loads the rest; a program with a first phase has none.
  const folder = startPhase.wasLight ? startPhase.folder : rendezvousFolder()
  hasFolder = folder !== undefined && reasonAgainstFolder(false, folder) === undefined
  return hasFolder
}

function mayBeNear(address: string): boolean {
  const isLoopback = address.startsWith('127.') || address === '::1' || address.startsWith('::ffff:127.')
  return isLoopback || mayBeOfContainer()
}

function patch(first: UdpHandle): void {
  isPatched = true
  const prototype = Object.getPrototypeOf(first) as Record<string, Method | undefined>
  nativeSends.v4 = prototype.send as Send
  nativeSends.v6 = prototype.send6 as Send
  for (const family of ['', '6']) {
    const native = prototype[`send${family}`] as Send
    replace(first, `send${family}`, prototype, function (
      this: UdpHandle,
      request,
      list,
      count,
      port,
      address,
      callback,
    ) {
      const notes = udpNotesOf(this)
      if (notes !== undefined) {
        if (notes.carrier === undefined) {
          if (address !== undefined && mayBeNear(address)) watching.onLocal()
        } else {
          const sent = notes.carrier.send(request, list, port, address)
          if (sent >= 0) return sent + 1
        }
      }
      // The native method counts its arguments.
      if (typeof port === 'boolean') return native.call(this, request, list, count, port)
      return native.call(this, request, list, count, port, address, callback)
    } as Send)
    const bind = prototype[`bind${family}`] as (address: string, port: number, flags: number) => number
    replace(
      first,
      `bind${family}`,
      prototype,
      function (this: UdpHandle, address: string, port: number, flags: number) {
        if ((flags & REUSE_FLAGS) !== 0) keepWithKernel(this, 'SHARED_PORT')
        return bind.call(this, address, port, flags)
      },
    )
    const connect = prototype[`connect${family}`] as (address: string, port: number) => number
    replace(first, `connect${family}`, prototype, function (this: UdpHandle, address: string, port: number) {
      const status = connect.call(this, address, port)
      if (status === 0) noteConnected(this, address, port)
      return status
    })
  }
  wrap(prototype, 'disconnect', (handle, call) => {
    const status = call()
    if (status === 0) noteDisconnected(handle)
    return status
  })
  wrap(prototype, 'recvStart', (handle, call) => {
    noteBound(handle)
    return call()
  })
  wrap(prototype, 'close', (handle, call) => {
    boundHandles.delete(handle)
    const notes = udpNotesOf(handle)
    notes?.carrier?.close()
    notes?.row?.close()
    return call()
  })
  wrap(prototype, 'bufferSize', (handle, call, [size, isReceive]) => {
    const notes = udpNotesOf(handle)
    const isChange = isReceive === true && size !== 0 && notes !== undefined
    if (isChange) notes.hasReceiveLimit = true
    const result = call()
    if (isChange) notes.carrier?.handleReceiveLimit()
    return result
  })
  wrap(prototype, 'open', (handle, call) => {
    keepWithKernel(handle, 'OWN_HANDLE')
    return call()
  })
  for (const name of Object.getOwnPropertyNames(prototype).filter(name => OPTIONS.test(name))) {
    wrap(prototype, name, (handle, call) => {
      keepWithKernel(handle, 'SOCKET_OPTION')
      return call()
    })
  }
}

/** Replaces a method of the prototype, and of the first handle, which has copied it if it is an IPv6 handle. */
function replace(
  first: object,
  name: string,
  prototype: Record<string, Method | undefined>,
  method: Method,
): void {
  const plainName = name.replace('6', '')
  const copy = Object.getOwnPropertyDescriptor(first, plainName)
  const isCopied = copy !== undefined && copy.value === prototype[name]
  define(prototype, name, method as (...args: never[]) => unknown)
  if (isCopied) Object.assign(first, { [plainName]: method })
}

function wrap(
  prototype: Record<string, Method | undefined>,
  name: string,
  around: (handle: UdpHandle, call: () => unknown, args: readonly unknown[]) => unknown,
): void {
  const native = prototype[name]
  if (native === undefined) return
  define(prototype, name, function (this: UdpHandle, ...args: never[]): unknown {
    return around(this, () => native.apply(this, args), args)
  })
}

function noteBound(handle: UdpHandle): void {
  const notes = udpNotesOf(handle)
  if (notes === undefined || notes.onmessage !== undefined || handle.onmessage === undefined) return
  notes.onmessage = handle.onmessage
  handle.onmessage = receive
  boundHandles.set(handle, notes)
  watching.onBound(handle, notes)
}

function receive(this: unknown, nread: number, handle: UdpHandle, bytes: Buffer, sender: Sender): void {
  const notes = udpNotesOf(handle) as UdpNotes
  if (nread >= 0) {
    if (notes.carrier?.handleReceived(bytes, sender)) return
    if (notes.carrier === undefined && mayBeNear(sender.address)) watching.onLocal()
  }
  notes.onmessage?.(nread, handle, bytes, sender)
}

function noteConnected(handle: UdpHandle, address: string, port: number): void {
  const notes = udpNotesOf(handle)
  if (notes === undefined) return
  notes.connectedTo = { address, port }
  notes.carrier?.handleConnected(address, port)
}

/** The kernel takes away the port of a socket whose program has not chosen it (udp_disconnect of Linux): such a one stays with it. */
function noteDisconnected(handle: UdpHandle): void {
  const notes = udpNotesOf(handle)
  if (notes === undefined) return
  notes.connectedTo = undefined
  if (notes.carrier === undefined) return
  notes.carrier.close()
  notes.carrier = undefined
  watching.onBound(handle, notes)
}

function keepWithKernel(handle: UdpHandle, reason: FallbackCode): void {
  const notes = udpNotesOf(handle)
  if (notes === undefined) return
  notes.reason ??= reason
  notes.carrier?.leave()
}
