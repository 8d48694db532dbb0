/** A stream of messages from one endpoint to another, and how each message of it ended. */
import { type Observable, type OperatorFunction, tap } from 'rxjs'
import type { Test } from 'tap'
import type { Endpoint, ReceivedMessage } from '../../am/index.ts'
import { deliver } from './endpoints.ts'
import { until } from './until.ts'
import type { World } from './world.ts'

/** The handler whose messages are the stream, and how many may be on their way. */
export const FLOW_STREAM = 1
export const FLOW_CREDITS = 4

export type Pipe = OperatorFunction<ReceivedMessage, unknown>

/** A sender and a receiver, and how each of the numbers that were sent has ended. */
export class Flow {
  readonly from: Endpoint
  readonly to: Endpoint
  readonly returned: number[] = []
  readonly taken: number[] = []
  readonly handled: number[] = []
  readonly errors: unknown[] = []
  /** Projections that run, and messages in this process that are not handled: now, and the most there ever were. */
  running = 0
  runningMax = 0
  unhandledMax = 0
  emitted = 0
  #open: (() => void)[] = []
  #isOpen = false

  constructor(from: Endpoint, to: Endpoint) {
    this.from = from
    this.to = to
    from.setHandler(0, message => void this.returned.push(message.word(0)))
  }

  /** A projection that ends when the test says so. */
  readonly project = async (message: ReceivedMessage): Promise<number> => {
    const number = message.word(0)
    this.taken.push(number)
    this.running++
    this.runningMax = Math.max(this.runningMax, this.running)
    if (!this.#isOpen) await new Promise<void>(resolve => this.#open.push(resolve))
    this.running--
    this.handled.push(number)
    return number
  }

  /** Lets one projection end, or all of them from now on. */
  letGo(): void {
    this.#open.shift()?.()
  }

  open(): void {
    this.#isOpen = true
    for (const end of this.#open.splice(0)) end()
  }

  subscribe(...pipes: Pipe[]): { unsubscribe(): void } {
    const counted: Observable<ReceivedMessage> = this.to.messages(FLOW_STREAM).pipe(tap(() => this.#count()))
    const piped = pipes.reduce<Observable<unknown>>((source, pipe) => source.pipe(pipe as never), counted)
    return piped.subscribe({ error: error => this.errors.push(error) })
  }

  async send(...numbers: number[]): Promise<void> {
    for (const number of numbers) await deliver(this.from, 0, () => this.from.request(0, FLOW_STREAM, number))
  }

  get creditsLeft(): number {
    return this.from.stats().peers[0]?.creditsLeft ?? 0
  }

  async untilAllCredits(): Promise<void> {
    await until('all credits', () => this.creditsLeft === FLOW_CREDITS)
  }

  #count(): void {
    this.emitted++
    this.unhandledMax = Math.max(this.unhandledMax, this.emitted - this.handled.length)
  }
}

export async function openFlow(world: World): Promise<Flow> {
  return new Flow(...(await world.openPair({ credits: FLOW_CREDITS }, { credits: FLOW_CREDITS })))
}

export function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i)
}

export function sorted(numbers: readonly number[]): number[] {
  return numbers.toSorted((a, b) => a - b)
}

/** Each number was handled or came back, and none both. */
export function expectEach(t: Test, flow: Flow, count: number): void {
  t.strictSame(sorted([...flow.taken, ...flow.returned]), upTo(count), 'each is handled or comes back')
}
