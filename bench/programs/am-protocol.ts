/** Constants shared by the two programs of the active-message measurements. */
export const ECHO = 1
export const ECHOED = 2
export const SINK = 3
export const STOP = 4

export const SEGMENT_SIZE = 1 << 20
export const MEDIUM_SIZE = 4096
