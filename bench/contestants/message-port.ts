import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Contestant } from './contestant.ts'
import { type Letter, LetterClient, type Mailbox } from './message-halves.ts'
import { PARTNER } from './partner.ts'

export const contestant: Contestant = {
  name: 'message-port',
  what: 'a worker thread and its MessagePort: two threads of one process',
  abilities: ['pingPong', 'stream'],
  polls: false,
  relinked: [],
  partner: 'own',
  serve: async () => '',
  dial: async () => {
    const worker = new Worker(PARTNER)
    await once(worker, 'online')
    return new LetterClient(mailboxOf(worker))
  },
}

function mailboxOf(worker: Worker): Mailbox {
  return {
    send: letter => worker.postMessage(letter),
    listen: listener => worker.on('message', listener as (letter: Letter) => void),
    close: async () => {
      await worker.terminate()
    },
  }
}
