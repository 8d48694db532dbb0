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
  /** One call; answers with its words. */
  | { readonly ask: 'call'; readonly destination: number; readonly words: number[] }
  | { readonly ask: 'report' }
  | { readonly ask: 'close' }

export interface Report {
  readonly sunk: number
  readonly echoed: number
  readonly answered: number
  /** Payloads that were not what they should be. */
  readonly wrong: number
  readonly returned: number
  readonly rss: number
  readonly outstanding: number
}
