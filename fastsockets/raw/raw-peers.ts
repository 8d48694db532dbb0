import type net from 'node:net'
import { markOwn } from '../../nic/index.ts'
import { acceptRaw } from '../connect/listeners.ts'
import { Peers } from '../connect/peers.ts'
import { openIoTurns } from '../host/io-turns.ts'
import { nodeInternals } from '../host/node-internals.ts'

let peers: Peers | undefined

/**
 * The peers of this thread's raw sockets. They have channels of their own, apart from those of `net.Socket`s: so a
 * program may poll them inside its own code without running other code of the program.
 */
export function rawPeers(): Peers {
  if (peers === undefined) {
    const internals = nodeInternals()
    // A relinked program has opened them already.
    if (internals !== undefined) openIoTurns(internals)
    peers = new Peers(acceptRaw, connectPlainly, true)
  }
  return peers
}

/** Connects over TCP, whether or not this program is relinked. */
export function connectPlainly(this: net.Socket, options: net.NetConnectOpts): net.Socket {
  markOwn(this)
  return this.connect(options)
}
