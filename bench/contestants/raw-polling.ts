import type { Contestant } from './contestant.ts'
import { dialRaw, serveRaw } from './raw-halves.ts'

export const contestant: Contestant = {
  name: 'raw-polling',
  what: 'raw sockets, trySend and tryRecv in a loop',
  abilities: ['pingPong', 'stream'],
  polls: true,
  relinked: [],
  partner: 'server',
  serve: () => serveRaw(true),
  dial: address => dialRaw(address, true),
}
