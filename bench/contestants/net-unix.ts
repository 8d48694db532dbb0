import { randomUUID } from 'node:crypto'
import type { Contestant } from './contestant.ts'
import { dialSockets, serveSockets } from './socket-halves.ts'

export const contestant: Contestant = {
  name: 'net-unix',
  what: 'node:net over a unix socket',
  abilities: ['pingPong', 'stream', 'connect', 'hold'],
  polls: false,
  relinked: [],
  partner: 'server',
  // An abstract name leaves no file behind.
  serve: () => serveSockets(name => ({ path: `\0fastsockets-bench-${name}-${randomUUID()}` })),
  dial: address => dialSockets(address),
}
