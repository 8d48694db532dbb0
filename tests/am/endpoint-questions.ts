/** What endpoint-child.ts can be asked, and how it answers. */
import type { EndpointOptions } from '../../am/index.ts'

/** Handlers that every such endpoint has. */
export const SINK = 1
export const ECHO = 2
export const ANSWER = 3
export const THROW = 4

export type Question =
  | { readonly ask: 'open'; readonly options?: EndpointOptions }
  | { readonly ask: 'map'; readonly destination: number; readonly name: string }
  | { readonly ask: 'unmap'; readonly destination: number }
  /** Sends requests to ECHO until `count` answers have come; each with `size` bytes of payload. */
  | { readonly ask: 'flood'; readonly destination: number; readonly count: number; readonly size: number }
  /** Sends requests to SINK as fast as it may; answers when all are done with, and how long it took. */
  | { readonly ask: 'produce'; readonly destination: number; readonly count: number; readonly size: number }
  /** One call; answers with its words. */
  | { readonly ask: 'call'; readonly destination: number; readonly words: number[] }
  | { readonly ask: 'report' }
  | { readonly ask: 'stats' }
  | { readonly ask: 'close' }

export interface Produced extends Report {
  readonly ms: number
}

export interface Report {
  readonly sunk: number
  readonly echoed: number
  readonly answered: number
  /** Payloads that were not what they should be. */
  readonly wrong: number
  readonly returned: number
  /** Bytes of objects and buffers that are in use, and of the whole process. */
  readonly live: number
  readonly rss: number
  readonly outstanding: number
}
