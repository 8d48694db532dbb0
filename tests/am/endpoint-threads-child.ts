/** A process whose endpoints live in worker threads: passes each question to the thread that it names. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Question } from './endpoint-questions.ts'

export type ThreadQuestion = { readonly thread: number } & (Question | { readonly ask: 'terminate' })

const program = new URL('./endpoint-child.js', import.meta.url)
const threads = new Map<number, Worker>()

process.on('message', async ({ thread, ...question }: ThreadQuestion) => {
  let worker = threads.get(thread)
  if (worker === undefined) {
    worker = new Worker(program, { argv: [process.argv[2]] })
    threads.set(thread, worker)
  }
  if (question.ask === 'terminate') {
    await worker.terminate()
    return process.send?.({})
  }
  const answered = once(worker, 'message')
  worker.postMessage(question)
  process.send?.((await answered)[0])
})
