/**
 * One half of a contestant as a process: reads questions from standard input, one JSON line each, and answers each with a
 * line. Ends with its standard input.
 *
 *   argv: name of the contestant
 */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Worker } from 'node:worker_threads'
import { HalfAnswers, orFailed } from '../half-answers.ts'
import type { Asked, Failed, Question } from '../half-questions.ts'

const THREAD = new URL('./half-thread.js', import.meta.url)

const [name = ''] = process.argv.slice(2)
const half = await HalfAnswers.of(name)
const threads: Worker[] = []

// The end of standard input means that the bench has gone: exit even during a long measurement.
process.stdin.once('end', () => process.exit())
for await (const line of createInterface({ input: process.stdin })) {
  print(await orFailed(() => answer(JSON.parse(line) as Asked)))
}

async function answer(asked: Asked): Promise<object> {
  switch (asked.ask) {
    case 'startThreads':
      for (let i = 0; i < asked.count; i++) threads.push(new Worker(THREAD, { workerData: name }))
      await Promise.all(threads.map(thread => once(thread, 'message')))
      return {}
    case 'threads':
      return {
        answers: await Promise.all(
          threads.slice(0, asked.count).map(thread => askThread(thread, asked.question)),
        ),
      }
    default:
      return await half.answer(asked)
  }
}

async function askThread(thread: Worker, question: Question): Promise<object> {
  const answered = once(thread, 'message')
  thread.postMessage(question)
  const [answer] = (await answered) as [object | Failed]
  if ('error' in answer) throw new Error(answer.error)
  return answer
}

function print(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}
