/**
 * Hashed ports (Fast Sockets 1997, section 3.6): a relinked client computes where a relinked listener has its
 * bootstrap.
 *
 * H maps ports 1024..65535 one to one onto themselves: multiply and add modulo 2^16, again while the result is
 * privileged (cycle walking keeps the map one to one). A privileged port walks the same way and may collide with
 * another port's image. A collision costs one more try, as the greeting names the port that it stands for.
 */
const MULTIPLIER = 0x6f4d
const INCREMENTS = [0x2c1b, 0x9e37, 0x51ed] as const

/** How many candidates a listener tries, and a client asks, in this order. */
export const CANDIDATE_COUNT = INCREMENTS.length
const UNPRIVILEGED_MIN = 1024

export function hashedPort(port: number, candidate: number): number {
  const increment = INCREMENTS[candidate]
  if (increment === undefined)
    throw new RangeError(`candidate ${candidate} is not within 0..${CANDIDATE_COUNT - 1}`)
  let hashed = port
  do hashed = (Math.imul(hashed, MULTIPLIER) + increment) & 0xffff
  while (hashed < UNPRIVILEGED_MIN)
  return hashed
}

/** Where the bootstrap of a listener may be, in the order in which it tried to bind. */
export function hashedPorts(port: number): number[] {
  return Array.from({ length: CANDIDATE_COUNT }, (_, candidate) => hashedPort(port, candidate)).filter(
    hashed => hashed !== port,
  )
}
