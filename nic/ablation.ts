/**
 * Techniques that `fastsockets bench ablation` switches off, or sets to another number, to measure the gain of each:
 *
 *   FASTSOCKETS_ABLATE=no-posting,spin-us=50
 *
 * Each module reads its ablation when it is loaded, so that the compiler sees a constant. For measurements only: an
 * ablated process is slower, and the names may change.
 */
const VARIABLE = 'FASTSOCKETS_ABLATE'

const ABLATIONS = {
  /** Received bytes go through the receive buffer even if a receive is posted. */
  'no-posting': 'switch',
  /** Credits and read bytes are acknowledged at once instead of when half of them are due. */
  'no-delayed-acks': 'switch',
  /** Over unreliable drivers: no acknowledgement rides on a frame; frames that come early are dropped. */
  'no-piggyback': 'switch',
  'no-unexpected-queue': 'switch',
  /** Over unreliable drivers: credits of each side, which has twice as many receives posted. */
  window: 'number',
  /** Longest time that a channel is polled after its last message, in microseconds. */
  'spin-us': 'number',
  /** Ring size of the connections that carry sockets, in bytes: a power of two. */
  ring: 'number',
  /** What a connection that starts on TCP must cost before it moves, in percent of the measured prices. */
  price: 'number',
  /** Each such connection moves at another price, up to ten times the measured one, by this seed. */
  'price-seed': 'number',
  /** With start: tcp every connection starts on TCP, even if a channel to the server is known. */
  'no-direct': 'switch',
  /** Longest wait for what a peer's count announces, in milliseconds. */
  'count-wait': 'number',
} as const

export type Ablation = keyof typeof ABLATIONS

const wanted = parse(process.env[VARIABLE] ?? '')

/** The number that is set, 1 for a switch that is set; undefined if the ablation is not set. */
export function ablation(name: Ablation): number | undefined {
  return wanted.get(name)
}

/** Emits a process warning for each malformed or unknown item, and ignores the item. */
function parse(text: string): Map<string, number> {
  const found = new Map<string, number>()
  for (const item of text.split(',').filter(item => item !== '')) {
    const [name = '', value] = item.split('=')
    const kind = Object.hasOwn(ABLATIONS, name) ? ABLATIONS[name as Ablation] : undefined
    const isRight =
      kind === 'switch' ? value === undefined : kind === 'number' && /^\d{1,9}$/.test(value ?? '')
    if (isRight) found.set(name, Number(value ?? 1))
    else process.emitWarning(`${VARIABLE}: ${JSON.stringify(item)} is no ablation`, { code: VARIABLE })
  }
  return found
}
