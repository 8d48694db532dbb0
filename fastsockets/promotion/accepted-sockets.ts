/**
 * The sockets of this thread that servers have accepted over TCP, found by the four addresses of their connections: a client
 * names them so when it asks for promotion.
 */
import type net from 'node:net'
import { isOwn } from '../../nic/index.ts'
import { fastOf } from '../handle/fast-handle.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { endsOfTcp } from '../handle/tcp-below.ts'
import { textOf } from './four-addresses.ts'
import { openSockets } from './reads.ts'

const byText = new Map<string, FastSocket>()
/** Accepted since the last look-up: to ask the kernel for addresses is left until somebody wants to know. */
const unnamed = new Set<FastSocket>()
const textOfSocket = new WeakMap<FastSocket, string>()

export function noteAccepted(socket: net.Socket): void {
  unnamed.add(socket as FastSocket)
}

/** Those that were accepted before this file was loaded. */
export function noteOlder(): void {
  for (const socket of openSockets() as FastSocket[]) {
    const { server } = socket as { server?: object }
    if (server && !isOwn(server) && fastOf(socket._handle) === undefined) noteAccepted(socket)
  }
}

export function forgetAccepted(socket: object): void {
  if (unnamed.delete(socket as FastSocket)) return
  const text = textOfSocket.get(socket as FastSocket)
  if (text !== undefined) byText.delete(text)
}

/** The accepted socket of that connection, if it can be moved now. */
export function findAccepted(port: number, text: string): FastSocket | undefined {
  for (const socket of unnamed) nameSocket(socket)
  unnamed.clear()
  return byText.get(`${text} ${port}`)
}

function nameSocket(socket: FastSocket): void {
  const ends = endsOfTcp(socket._handle, true)
  if (ends === undefined) return
  const text = `${textOf(ends)} ${ends.server.port}`
  byText.set(text, socket)
  textOfSocket.set(socket, text)
}
