/** What a program has seen: for each of the things it looks at, the events in their order. */
import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'

/** Whatever has events: packages have their own types of emitters. */
interface Emitter {
  on(event: never, listener: never): unknown
  once(event: never, listener: never): unknown
}

export class Journal {
  /** Things that go on at the same time have no order between them: each has a name and a list of its own. */
  readonly lists: Record<string, string[]> = {}
  /** Ports, which differ from run to run, and what stands for them. Folders of scenarios are called interop-…. */
  readonly #masks = new Map<string, string>()

  note(name: string, ...what: unknown[]): void {
    this.lists[name] ??= []
    this.lists[name].push(what.map(word => this.#masked(String(word))).join(' '))
  }

  /** A port of this run, which no journal may show. */
  mask(port: number, as: string): void {
    this.#masks.set(String(port), as)
  }

  /** Notes each of these events of `emitter`, with its arguments where `describe` makes something of them. */
  watch(
    name: string,
    emitter: Emitter,
    events: readonly string[],
    describe: (event: string, ...args: never[]) => unknown = () => '',
  ): void {
    for (const event of events) {
      const note = (...args: unknown[]): void => {
        const said = event === 'error' ? describeError(args[0]) : describe(event, ...(args as never[]))
        this.note(name, said === '' ? event : `${event} ${said}`)
      }
      emitter.on(event as never, note as never)
    }
  }

  #masked(text: string): string {
    return text
      .replace(/(?<!\w)\d{4,5}(?!\w)/g, digits => this.#masks.get(digits) ?? digits)
      .replace(/\/[\w/]*\/interop-[\w-]+/g, '<folder>')
  }
}

/** All that a program can find in an error, and in its causes. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return `no error: ${error}`
  const { cause, errors, name, message, ...rest } = error as Error & { cause?: unknown; errors?: unknown }
  const fields = Object.entries(rest)
    .filter(([, value]) => typeof value === 'string' || typeof value === 'number')
    .map(([key, value]) => `${key}=${value}`)
    .sort()
  // OpenSSL begins with the number of the thread.
  const own = [`${name}: ${message.replace(/^[0-9A-F]{8,16}:/, '')}`, ...fields].join(' ')
  const below = [...(Array.isArray(errors) ? errors : []), ...(cause === undefined ? [] : [cause])]
  return [own, ...below.map(describeError)].join(' <- ')
}

/** Like `once` of node:events, but an 'error' before it is no failure. */
export function heard(emitter: Emitter, event: string): Promise<unknown> {
  return new Promise(resolve => emitter.once(event as never, resolve as never))
}

export async function failureOf(action: Promise<unknown>): Promise<string> {
  try {
    await action
    return 'no failure'
  } catch (error) {
    return describeError(error)
  }
}

export function digest(bytes: Uint8Array | string): string {
  return `${Buffer.byteLength(bytes)} bytes ${createHash('sha1').update(bytes).digest('hex').slice(0, 12)}`
}

export async function digestOf(stream: Readable | AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha1')
  let length = 0
  for await (const chunk of stream) {
    hash.update(chunk)
    length += chunk.length
  }
  return `${length} bytes ${hash.digest('hex').slice(0, 12)}`
}

/** Bytes that look random and are the same in every process. */
export function bytesOf(length: number, seed: string): Buffer {
  return createHash('shake256', { outputLength: length }).update(seed).digest()
}

export const LARGE = 10_500_000
export const largeBytes = (): Buffer => {
  large ??= bytesOf(LARGE, 'large')
  return large
}
let large: Buffer | undefined
