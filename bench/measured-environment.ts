/**
 * The environment of measured programs. The user's settings for Fast Sockets are removed: the preload, and the
 * variables that change its behaviour. The time-out for a greeting stays, because it changes no figure.
 */
import { plainNodeOptions, relinkedNodeOptions } from '../fastsockets/cli/relink.ts'

const PREFIX = 'FASTSOCKETS_'
const KEPT = 'FASTSOCKETS_GREETING_TIMEOUT_MS'

export function measuredEnvironment(isRelinked: boolean): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith(PREFIX) || name === KEPT)
  const options = plainNodeOptions(process.env.NODE_OPTIONS)
  return {
    ...Object.fromEntries(kept),
    NODE_OPTIONS: isRelinked ? relinkedNodeOptions(options) : options,
  }
}
