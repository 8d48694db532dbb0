/**
 * The sockets of this thread that servers have accepted over TCP, found by the four addresses of their connections: a client
 * names them so when it asks for promotion.
 */
import type net from 'node:net'
import { isOwn, makeHidden } from '../../nic/index.ts'
import { setImmediate } from '../../nic/real-time.ts'
import { fastOf } from '../handle/fast-handle.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { endsOfTcp, inodeOf } from '../handle/tcp-below.ts'
import { inTurns, SOCKETS_PER_TURN } from '../host/in-turns.ts'
import { keptGlobals } from '../host/kept-globals.ts'
import { promotedOf } from './find-promoted.ts'
import { keyOf, keyOfInode } from './four-addresses.ts'
import { openHandles, openSockets } from './reads.ts'

type Reference = WeakRef<FastSocket>

/** Sockets that are sent to other processes are never destroyed here: nothing of this file keeps one. */
const byText = new Map<string, Reference>()
/** To ask the kernel for their addresses is left until a client wants to know. */
let unnamed: Reference[] = []
/** Of `unnamed` so many may be named in this turn. */
let leftInTurn = SOCKETS_PER_TURN
/** Those are being listed that were accepted before the first client asked. */
let isListing = false
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

/** The accepted socket of that connection (`keyOf`); `later` if that is not known before one of the next turns. */
export function findAccepted(key: string): FastSocket | 'later' | undefined {
  if (!isWanted) noteOlder()
  nameSome()
  const found = byText.get(key)?.deref()
  // The address may be that of a later connection, too.
  if (found?._handle) return found
  return isListing || unnamed.length > 0 ? 'later' : undefined
}

function noteOlder(): void {
  isWanted = isListing = true
  inTurns(openHandles(), noteServers, () => {
    isListing = false
  })
}

function noteServers(handles: readonly unknown[]): void {
  for (const socket of openSockets(handles) as FastSocket[]) {
    const { server } = socket as { server?: object }
    if (server && !isOwn(server) && fastOf(socket._handle)?.isOnTcp !== false) noteAccepted(socket)
  }
}

/** Names what this turn has time for; the next turns go on. */
function nameSome(): void {
  if (unnamed.length === 0 || leftInTurn === 0) return
  if (leftInTurn === SOCKETS_PER_TURN) makeHidden(() => setImmediate(beginTurn))
  const some = unnamed.splice(0, leftInTurn)
  leftInTurn -= some.length
  for (const reference of some) nameSocket(reference)
}

function beginTurn(): void {
  leftInTurn = SOCKETS_PER_TURN
  nameSome()
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
