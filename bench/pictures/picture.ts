/** A picture before it is drawn: what lies on its axes. Knows nothing of the library that draws it. */
export interface Picture {
  /** Of the file, without its ending. */
  readonly name: string
  readonly title: string
  /** What the axes are, with units. */
  readonly x: Axis
  readonly y: Axis
  readonly series: readonly Series[]
  readonly kind: 'curves' | 'bars'
}

export interface Axis {
  readonly title: string
  readonly scale: 'log' | 'linear' | 'names'
  /** How a number of this axis is written: bytes of a message, or a quantity of this unit. */
  readonly unit: string
  /** The names of an axis of names. */
  readonly names?: readonly string[]
}

export interface Series {
  readonly name: string
  /** For an axis of names, x is the index of the name. */
  readonly points: readonly (readonly [x: number, y: number])[]
}
