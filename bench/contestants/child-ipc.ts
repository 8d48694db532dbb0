import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Contestant } from './contestant.ts'
import { LetterClient, type Mailbox } from './message-halves.ts'
import { PARTNER } from './partner.ts'

export const contestant: Contestant = {
  name: 'child-ipc',
  what: 'child_process.fork and its IPC, with serialization "advanced"',
  abilities: ['pingPong', 'stream'],
  polls: false,
  relinked: [],
  partner: 'own',
  serve: async () => '',
  dial: async () => {
    const child = fork(PARTNER, { serialization: 'advanced' })
    await once(child, 'spawn')
    return new LetterClient(mailboxOf(child))
  },
}

function mailboxOf(child: ChildProcess): Mailbox {
  return {
    send: letter => child.send(letter),
    listen: listener => child.on('message', listener as (message: unknown) => void),
    close: async () => {
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}
