/** The client's part of the bootstrap: finds the hashed port, hears the greeting, shakes hands. */
import net from 'node:net'
import debug from 'debug'
import type { FallbackCode } from '../reasons.ts'
import {
  type Answer,
  answerLength,
  decodeAnswer,
  decodeIntroduction,
  encodeIntroduction,
  GREETING_MAGIC,
  HELLO_MAGIC,
  INTRODUCTION_SIZE,
  type Introduction,
  mayBe,
  VERSION,
} from './bootstrap-layout.ts'
import { CANDIDATE_COUNT, hashedPort } from './hashed-port.ts'

const log = debug('fastsockets:bootstrap')

/** A stranger who says nothing may cost this much, over all candidates together; then it is TCP. */
const GREETING_TIMEOUT_MS = 80
/** A server that has greeted us is one of ours; it may be busy. */
const ANSWER_TIMEOUT_MS = 1000

/** What became of an attempt; `detail` is for the reason's text. */
export type Greeted =
  | { readonly connection: net.Socket; readonly greeting: Introduction }
  | { readonly code: FallbackCode; readonly detail?: string }

type ConnectFunction = (this: net.Socket, options: net.TcpNetConnectOpts) => net.Socket

/** Connects to the hashed port of `port` at `address` and hears the greeting, without sending a byte. */
export async function callHashedPort(
  address: string,
  port: number,
  family: 4 | 6,
  connect: ConnectFunction,
): Promise<Greeted> {
  const deadlineMs = performance.now() + GREETING_TIMEOUT_MS
  let worst: Greeted = { code: 'NOT_RELINKED' }
  for (let candidate = 0; candidate < CANDIDATE_COUNT; candidate++) {
    const hashed = hashedPort(port, candidate)
    if (hashed === port) continue
    const leftMs = deadlineMs - performance.now()
    if (leftMs <= 0) return { code: 'SILENT' }
    const outcome = await call(address, hashed, family, connect, leftMs)
    if ('connection' in outcome) {
      if (outcome.greeting.port === port) return outcome
      // Somebody else's hashed port: ours must be another candidate.
      outcome.connection.destroy()
    } else if (outcome.code !== 'NOT_RELINKED') {
      worst = outcome
    }
  }
  return worst
}

function call(
  address: string,
  port: number,
  family: 4 | 6,
  connect: ConnectFunction,
  timeoutMs: number,
): Promise<Greeted> {
  return new Promise(resolve => {
    const connection = new net.Socket()
    let heard: Buffer = Buffer.alloc(0)
    const settle = (outcome: Greeted): void => {
      clearTimeout(timer)
      connection.removeAllListeners()
      connection.on('error', () => {})
      if (!('connection' in outcome)) connection.destroy()
      resolve(outcome)
    }
    const timer = setTimeout(() => settle({ code: 'SILENT' }), timeoutMs)
    connection.on('error', () => settle({ code: 'NOT_RELINKED' }))
    connection.on('close', () => settle({ code: 'STRANGER' }))
    connection.on('connect', () => {
      // A port of the ephemeral range that nobody listens on can connect to itself.
      if (connection.localPort === port) settle({ code: 'NOT_RELINKED' })
    })
    connection.on('data', bytes => {
      heard = Buffer.concat([heard, bytes])
      if (heard.length > INTRODUCTION_SIZE || !mayBe(GREETING_MAGIC, heard))
        return settle({ code: 'STRANGER' })
      const greeting = decodeIntroduction(GREETING_MAGIC, heard)
      if (greeting === undefined) return
      if (greeting.version !== VERSION) {
        settle({ code: 'VERSION', detail: `ours is ${VERSION}, theirs ${greeting.version}` })
      } else {
        connection.pause()
        settle({ connection, greeting })
      }
    })
    log('calling %s port %d', address, port)
    connect.call(connection, { host: address, port, family, noDelay: true })
  })
}

/** Introduces us and waits for the answer; undefined if none came, or none that makes sense. */
export function shakeHands(connection: net.Socket, hello: Introduction): Promise<Answer | undefined> {
  return new Promise(resolve => {
    let heard: Buffer = Buffer.alloc(0)
    const settle = (answer: Answer | undefined): void => {
      clearTimeout(timer)
      connection.removeAllListeners()
      connection.on('error', () => {})
      if (answer === undefined) connection.destroy()
      resolve(answer)
    }
    const timer = setTimeout(() => settle(undefined), ANSWER_TIMEOUT_MS)
    connection.on('error', () => settle(undefined))
    connection.on('close', () => settle(undefined))
    connection.on('data', bytes => {
      heard = Buffer.concat([heard, bytes])
      const length = answerLength(heard)
      if (length === undefined || heard.length > length) return settle(undefined)
      if (heard.length === length && length > 0) {
        const answer = decodeAnswer(heard)
        if (answer !== undefined) settle(answer)
      }
    })
    connection.resume()
    connection.write(encodeIntroduction(HELLO_MAGIC, hello))
  })
}
