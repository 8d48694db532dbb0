import { hostSetting } from '../half-settings.ts'
import type { Contestant } from './contestant.ts'
import { dialSockets, serveSockets } from './socket-halves.ts'

export const contestant: Contestant = {
  name: 'net-tcp',
  what: 'node:net over TCP: what all others are compared with',
  abilities: ['pingPong', 'stream', 'connect', 'hold', 'takeTurns'],
  polls: false,
  relinked: [],
  partner: 'server',
  serve: () => serveSockets(() => ({ host: hostSetting(), port: 0 })),
  dial: address => dialSockets(address),
}
