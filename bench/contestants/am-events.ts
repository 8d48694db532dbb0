import { dialMessages, serveMessages } from './am-halves.ts'
import type { Contestant } from './contestant.ts'

export const contestant: Contestant = {
  name: 'am-events',
  what: 'active messages by the event loop',
  abilities: ['pingPong', 'stream'],
  polls: false,
  relinked: [],
  partner: 'server',
  serve: () => serveMessages(false),
  dial: address => dialMessages(address, false),
}
