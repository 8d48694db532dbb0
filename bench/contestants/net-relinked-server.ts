import type { Contestant } from './contestant.ts'
import { dialSockets, serveSockets } from './socket-halves.ts'

export const contestant: Contestant = {
  name: 'net-relinked-server',
  what: 'the same program, only the server relinked: what it costs to be ready for others',
  abilities: ['takeTurns'],
  unable: 'it is compared in plain-peers alone',
  polls: false,
  relinked: ['server'],
  partner: 'server',
  serve: () => serveSockets(() => ({ host: '127.0.0.1', port: 0 })),
  dial: address => dialSockets(address),
}
