import { dialMessages, serveMessages } from './am-halves.ts'
import type { Contestant } from './contestant.ts'

export const contestant: Contestant = {
  name: 'am-polling',
  what: 'active messages, both halves in a loop of poll()',
  abilities: ['pingPong', 'stream'],
  polls: true,
  relinked: [],
  partner: 'server',
  serve: () => serveMessages(true),
  dial: address => dialMessages(address, true),
}
