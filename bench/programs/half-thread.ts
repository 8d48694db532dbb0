/**
 * One half of a contestant as a thread of `half.ts`: posts a message when ready, then answers each question with one.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { HalfAnswers, orFailed } from '../half-answers.ts'
import type { Question } from '../half-questions.ts'

const half = await HalfAnswers.of(workerData as string)
parentPort?.on('message', async (question: Question) => {
  parentPort?.postMessage(await orFailed(() => half.answer(question)))
})
parentPort?.postMessage('ready')
