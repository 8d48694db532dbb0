import type { Contestant } from './contestant.ts'
import { dialSockets, serveSockets } from './socket-halves.ts'
import { assertWire } from './wire.ts'

export const contestant: Contestant = {
  name: 'net-half-relinked',
  what: 'the same program, only the client relinked: what it costs where nothing is won',
  abilities: ['pingPong', 'stream', 'connect', 'hold', 'takeTurns'],
  polls: false,
  relinked: ['client'],
  partner: 'server',
  serve: () => serveSockets(() => ({ host: '127.0.0.1', port: 0 })),
  dial: async address => await dialSockets(address, await assertWire('tcp')),
}
