import type { Contestant } from './contestant.ts'
import { dialRaw, serveRaw } from './raw-halves.ts'

export const contestant: Contestant = {
  name: 'raw',
  what: 'raw sockets, await send and await recv',
  abilities: ['pingPong', 'stream', 'connect', 'hold'],
  polls: false,
  relinked: [],
  partner: 'server',
  serve: () => serveRaw(false),
  dial: address => dialRaw(address, false),
}
