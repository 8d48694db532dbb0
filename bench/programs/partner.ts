/** The other half of the contestants `message-port` and `child-ipc`. */
import { parentPort } from 'node:worker_threads'
import { answerLetters, type Letter } from '../contestants/message-halves.ts'

if (parentPort === null) {
  answerLetters(
    {
      send: letter => process.send?.(letter),
      listen: listener => process.on('message', listener as (message: unknown) => void),
      close: async () => process.disconnect(),
    },
    () => {
      const { user, system } = process.cpuUsage()
      return user + system
    },
  )
} else {
  const port = parentPort
  answerLetters(
    {
      send: letter => port.postMessage(letter),
      listen: listener => port.on('message', listener as (letter: Letter) => void),
      close: async () => port.close(),
    },
    // A thread's CPU time is part of its process's.
    () => 0,
  )
}
