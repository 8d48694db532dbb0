/** What the test of random schedules and its program say to each other. */

export type Place = { readonly path: string } | { readonly port: number }
/** What is done to a socket, with the length of what is written. */
export type Act = readonly [string, number?]

export interface Order {
  readonly listen?: { readonly isOnPath: boolean; readonly allowHalfOpen: boolean }
  readonly open?: readonly {
    readonly place: Place
    readonly number: number
    readonly allowHalfOpen: boolean
  }[]
  readonly step?: readonly { readonly number: number; readonly acts: readonly Act[] }[]
  readonly ask?: 'idle' | 'seen'
}

export interface Answer {
  readonly place?: Place
  readonly idleMs?: number
  readonly count?: number
  readonly seen?: readonly (readonly [number, readonly string[]])[]
  readonly transports?: readonly string[]
}
