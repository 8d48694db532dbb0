/**
 * Changes options of V8 at run time. The options belong to the process, so only the main thread changes them. An option
 * that the user has set on the command line or in NODE_OPTIONS stays; `FASTSOCKETS_V8_FLAGS=keep` keeps all.
 */
import { setFlagsFromString } from 'node:v8'
import { isMainThread } from 'node:worker_threads'

const chosen = `${process.env.NODE_OPTIONS} ${process.execArgv.join(' ')}`.replaceAll('_', '-')

/** `option` includes its leading dashes. */
export function mayChange(option: string): boolean {
  return isMainThread && process.env.FASTSOCKETS_V8_FLAGS !== 'keep' && !chosen.includes(option)
}

export function setOption(option: string, value: number): void {
  setFlagsFromString(`${option}=${value}`)
}
