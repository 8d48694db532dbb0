/**
 * The sockets of this thread that servers have accepted over TCP, found by the four addresses of their connections: a client
 * names them so when it asks for promotion.
 */
import type net from 'node:net'
import { isOwn } from '../../nic/index.ts'
import { fastOf } from '../handle/fast-handle.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { endsOfTcp, inodeOf } from '../handle/tcp-below.ts'
import { keptGlobals } from '../host/kept-globals.ts'
import { promotedOf } from './find-promoted.ts'
import { keyOf, keyOfInode } from './four-addresses.ts'
import { openSockets } from './reads.ts'

type Reference = WeakRef<FastSocket>

/** Sockets that are sent to other processes are never destroyed here: nothing of this file keeps one. */
const byText = new Map<string, Reference>()
/** Accepted since the last look-up: to ask the kernel for addresses is left until a client wants to know. */
let unnamed: Reference[] = []
const textOfSocket = new WeakMap<FastSocket, string>()
/** From so many on, those are dropped that are gone. */
const PRUNED_FROM = 1024
let pruneAt = PRUNED_FROM
/** A client has asked for promotion: until then nothing is noted. */
let isWanted = false

export function noteAccepted(socket: net.Socket): void {
  if (!isWanted) return
  unnamed.push(new keptGlobals.WeakRef(socket as FastSocket))
  if (unnamed.length + byText.size >= pruneAt) prune()
}

function prune(): void {
  unnamed = unnamed.filter(reference => reference.deref()?._handle)
  for (const [text, reference] of byText) if (!reference.deref()?._handle) byText.delete(text)
  pruneAt = Math.max(PRUNED_FROM, 2 * (unnamed.length + byText.size))
}

export function forgetAccepted(socket: object): void {
  const text = isWanted ? textOfSocket.get(socket as FastSocket) : undefined
  if (text !== undefined && byText.get(text)?.deref() === socket) byText.delete(text)
}

/** The accepted socket of that connection (`keyOf`). */
export function findAccepted(key: string): FastSocket | undefined {
  if (!isWanted) noteOlder()
  for (const reference of unnamed) nameSocket(reference)
  unnamed = []
  return byText.get(key)?.deref()
}

/** Those that were accepted before the first client asked. */
function noteOlder(): void {
  isWanted = true
  for (const socket of openSockets() as FastSocket[]) {
    const { server } = socket as { server?: object }
    if (server && !isOwn(server) && fastOf(socket._handle)?.isOnTcp !== false) noteAccepted(socket)
  }
}

function nameSocket(reference: Reference): void {
  const socket = reference.deref()
  const handle = socket?._handle
  const below = promotedOf(handle)?.tcp ?? handle
  const ends = endsOfTcp(below, true)
  const inode = ends === undefined ? inodeOf(below) : undefined
  const text = ends === undefined ? inode && keyOfInode(inode) : keyOf(ends)
  if (socket === undefined || !text) return
  byText.set(text, reference)
  textOfSocket.set(socket, text)
}
