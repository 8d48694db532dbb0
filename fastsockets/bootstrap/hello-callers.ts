/** Reads the HELLO of each caller and answers it (bootstrap-layout.ts). */
import type * as net from 'node:net'
import { type Clock, startInBackground, type Timer } from '../../nic/clock.ts'
import { type NetworkPath, openLog } from '../../nic/index.ts'
import { publishStep } from '../host/steps.ts'
import {
  decodeIntroduction,
  encodeAnswer,
  HELLO_MAGIC,
  INTRODUCTION_SIZE,
  type Introduction,
  mayBe,
  nameOfRefusal,
} from './bootstrap-layout.ts'
import { type Kernel, realKernel } from './kernel.ts'
import { endsOf, transcriptOf } from './transcript.ts'

const log = openLog('fastsockets:bootstrap')

/** From the accept to the complete HELLO; single bytes do not prolong it. */
const HELLO_TIMEOUT_MS = 2000

/** Takes over the connection of a finished handshake. The first frame of the new channel must carry `transcript`. */
export type Finish = (connection: net.Socket, transcript: Buffer) => void

export type Reply =
  | { readonly refusal: number }
  | { readonly driver: string; readonly blob: Uint8Array; readonly finish: Finish }

export interface HelloHost {
  /** Of the simulator; by default the real one. */
  readonly kernel?: Kernel
  /** Answers a HELLO. `uid`: the caller's user, if the kernel knows it. `path`: undefined within a host. */
  answer(
    hello: Introduction,
    uid: number | undefined,
    isThroughFolder: boolean,
    path: NetworkPath | undefined,
  ): Reply
}

/** The addresses of both ends of a TCP connection; undefined within a host. */
export function pathOf({ localAddress: own, remoteAddress: peer }: net.Socket): NetworkPath | undefined {
  return own === undefined || peer === undefined ? undefined : { own, peer }
}

/** The greeting that this HELLO answers, or a refusal. */
export type FindGreeting = (hello: Introduction) => Buffer | number

export class HelloCallers {
  readonly #host: HelloHost
  readonly #isThroughFolder: boolean
  readonly #clock: Clock
  /** Each with its timer. */
  readonly #callers = new Map<net.Socket, Timer>()

  /** `isThroughFolder`: the callers have come through the rendezvous folder. */
  constructor(host: HelloHost, isThroughFolder = false) {
    this.#host = host
    this.#clock = (host.kernel ?? realKernel).clock
    this.#isThroughFolder = isThroughFolder
  }

  /**
   * Reads the HELLO of `caller`, which has an 'error' listener, and answers. Calls `onOver` once: after the offer, or
   * when the caller has gone.
   */
  serve(
    caller: net.Socket,
    uid: number | undefined,
    findGreeting: FindGreeting,
    onOver: () => void = () => {},
  ): void {
    const forget = (): void => {
      if (!this.#callers.has(caller)) return
      this.#clock.clearTimeout(this.#callers.get(caller))
      this.#callers.delete(caller)
      onOver()
    }
    const hangUp = (): void => void caller.destroy()
    this.#callers.set(caller, startInBackground(this.#clock, hangUp, HELLO_TIMEOUT_MS))
    caller.once('close', forget)
    let received = Buffer.alloc(0)
    const handleData = (bytes: Buffer): void => {
      received = Buffer.concat([received, bytes])
      // TCP may cut our greeting where that of a server in its first phase ends. The client then sends the magic to ask for the rest, and
      // its HELLO, which begins with the magic, later.
      const more = received.subarray(HELLO_MAGIC.length)
      if (more.length > 0 && mayBe(HELLO_MAGIC, received) && mayBe(HELLO_MAGIC, more)) received = more
      if (received.length > INTRODUCTION_SIZE || !mayBe(HELLO_MAGIC, received)) return void caller.destroy()
      if (received.length < INTRODUCTION_SIZE) return
      caller.off('data', handleData)
      publishStep('server introduced')
      if (this.#answer(caller, uid, received, findGreeting)) forget()
    }
    caller.on('data', handleData)
  }

  close(): void {
    for (const caller of this.#callers.keys()) caller.destroy()
  }

  /** True if the caller has an offer. A refused caller counts against the limits until its connection has closed. */
  #answer(caller: net.Socket, uid: number | undefined, bytes: Buffer, findGreeting: FindGreeting): boolean {
    const hello = decodeIntroduction(HELLO_MAGIC, bytes) as Introduction
    const greeting = findGreeting(hello)
    const reply =
      typeof greeting === 'number'
        ? { refusal: greeting }
        : this.#host.answer(hello, uid, this.#isThroughFolder, pathOf(caller))
    if ('refusal' in reply || typeof greeting === 'number') {
      const result = 'refusal' in reply ? reply.refusal : (greeting as number)
      log('refused pid %d: %s', hello.pid, nameOfRefusal(result))
      caller.end(encodeAnswer({ result, driver: '', blob: Buffer.alloc(0) }))
      return false
    }
    const answer = encodeAnswer({ result: 0, driver: reply.driver, blob: Buffer.from(reply.blob) })
    caller.write(answer)
    publishStep('server answered')
    reply.finish(caller, transcriptOf({ greeting, hello: bytes, answer }, endsOf(caller, 'server')))
    return true
  }
}
