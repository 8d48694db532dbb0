/** Makes a failing simulation shorter: fewer steps first, then fewer kinds of fault, then the simplest hardware. */
import { type Kind, simulate } from './simulate.ts'
import { FAULT_KINDS, type Outcome, type SimulationOptions } from './world.ts'

/** Options under which the system still breaks a rule, perhaps another one, and what it breaks. */
export async function shrink(
  kind: Kind,
  options: SimulationOptions,
  outcome: Outcome,
): Promise<{ readonly options: SimulationOptions; readonly outcome: Outcome }> {
  let best = { options: { ...options, steps: outcome.steps }, outcome }
  const attempt = async (changed: Partial<SimulationOptions>): Promise<boolean> => {
    const next = { ...best.options, ...changed }
    const result = await simulate(kind, next)
    if (result.failure === undefined) return false
    best = { options: { ...next, steps: result.steps }, outcome: result }
    return true
  }
  const shorten = async (): Promise<void> => {
    for (let fewer = best.options.steps >> 1; fewer > 0; ) {
      const isShorter = best.options.steps > fewer && (await attempt({ steps: best.options.steps - fewer }))
      if (!isShorter) fewer >>= 1
    }
  }
  await shorten()
  for (const fault of FAULT_KINDS) {
    const { without = [] } = best.options
    if (!without.includes(fault)) await attempt({ without: [...without, fault] })
  }
  await attempt({ hardware: 'ideal' })
  await shorten()
  return best
}
