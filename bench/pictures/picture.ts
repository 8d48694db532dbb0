/** A picture before it is drawn: the data on its axes. Knows nothing of the library that draws it. */
export interface Picture {
  /** Of the file, without its ending. */
  readonly name: string
  readonly title: string
  /** What the axes are, with units. */
  readonly x: Axis
  readonly y: Axis
  /** At most `CURVES_MAX` of curves. */
  readonly series: readonly Series[]
  readonly kind: 'curves' | 'bars'
  /** A line at this value, with its name. */
  readonly reference?: { readonly value: number; readonly name: string }
  /** How the spread was found; undefined if no point has one. */
  readonly spread?: string
}

/** A picture and how it was drawn. */
export interface Drawn {
  readonly picture: Picture
  readonly svg: string
}

/** More curves cannot be told apart. */
export const CURVES_MAX = 6

export interface Axis {
  readonly title: string
  readonly scale: 'log' | 'linear' | 'names'
  /** How a number of this axis is written: bytes of a message, or a quantity of this unit. */
  readonly unit: string
  /** The names of an axis of names. */
  readonly names?: readonly string[]
}

export interface Series {
  /** A contestant, which has its own look, or any other name. */
  readonly name: string
  readonly points: readonly Point[]
}

export interface Point {
  /** For an axis of names the index of the name. */
  readonly x: number
  readonly y: number
  /** The least and the greatest of the rounds. */
  readonly low?: number
  readonly high?: number
  /** The contestant of a bar, where the bars of a series belong to several. */
  readonly of?: string
}
