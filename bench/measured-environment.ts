/**
 * The environment of programs that are measured. What whoever starts the bench has set for Fast Sockets does not reach them:
 * neither a preload, nor variables that change how it works. How long a greeting is waited for changes no figure.
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
