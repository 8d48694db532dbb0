/** Messages of sockets on a channel: a peer that keeps the rules of active messages, and breaks those of sockets. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { WINDOW } from '../../../../fastsockets/stream/stream-layout.ts'
import { HostileSockets } from '../../../support/hostile-sockets.ts'
import { Random } from '../../../support/random.ts'
import type { Attack, Kind } from '../kind.ts'

/** Messages on one channel, if it is not ended before. */
const MESSAGES_EACH = 60
const HONEST_PEERS = 10
const HONEST_STEPS = 20

export const socketMessages: Kind = {
  name: 'socket-messages',
  what: 'CONNECT, ACCEPT, DATA, CONSUMED, CLOSE of sockets, to a channel with streams',
  reaches: ['message', 'byte', 'channel ended', 'channel open'],
  open: () => ({
    async attack({ random, inputs, victim, count, wrong }: Attack) {
      for (let sent = 0; sent < inputs; ) {
        const peer = new HostileSockets(random)
        while (!peer.isGone && peer.sent < MESSAGES_EACH) victim(() => peer.step())
        count(peer.isGone ? 'channel ended' : 'channel open')
        peer.close()
        await nextTurn()
        await nextTurn()
        const given = peer.sockets.reduce((sum, { received }) => sum + received, 0)
        if (given > peer.sentBytes) wrong(`${given} bytes of ${peer.sentBytes}`)
        for (const { endings, stream } of peer.sockets) {
          if (endings > 1) wrong(`${endings} ends of one socket`)
          if (stream.waitingLength > WINDOW) wrong(`${stream.waitingLength} bytes kept`)
        }
        count('message', peer.sent)
        count('byte', given)
        sent += Math.max(1, peer.sent)
      }
    },
    async honest() {
      // Even one that lies about nothing may answer what it may not, and is cut off then: one of a few is not.
      for (let seed = 0; seed < HONEST_PEERS; seed++) {
        const peer = new HostileSockets(new Random(seed), 0)
        for (let i = 0; i < HONEST_STEPS; i++) {
          peer.step()
          await nextTurn()
        }
        const isServed = !peer.isGone && peer.sockets.length > 0
        peer.close()
        await nextTurn()
        if (isServed) return
      }
      throw new Error('a peer that keeps the rules is not served')
    },
  }),
}
