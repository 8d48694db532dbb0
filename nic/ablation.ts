/**
 * Techniques that `fastsockets bench ablation` switches off, or sets to another number, to see what each of them is worth:
 *
 *   FASTSOCKETS_ABLATE=no-posting,spin-us=50
 *
 * Each is read once, when the module that has the technique is loaded: the compiler sees a constant. This is for
 * measurements only, and no promise: what is ablated is slower, and its names may change.
 */
const VARIABLE = 'FASTSOCKETS_ABLATE'

const ABLATIONS = {
  /** Received bytes go by way of the receive buffer, also if a receive is posted. */
  'no-posting': 'switch',
  /** Credits and bytes that were taken are reported at once, and not when half of them are due. */
  'no-delayed-acks': 'switch',
  /** How long a channel is polled after the last message, at most; microseconds. */
  'spin-us': 'number',
  /** Bytes of a ring of sockets: a power of two. */
  ring: 'number',
} as const

export type Ablation = keyof typeof ABLATIONS

const wanted = parse(process.env[VARIABLE] ?? '')

/** The number that is set; 1 for a switch; undefined if nothing is said: then everything is as it ships. */
export function ablation(name: Ablation): number | undefined {
  return wanted.get(name)
}

/** What makes no sense is told as a warning, and ablates nothing. */
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
