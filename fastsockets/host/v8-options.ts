/**
 * Options of V8 that are changed for a while, at run time. They are of the process, not of a thread: the main thread alone
 * does so. Who has chosen one on the command line keeps it, and with `FASTSOCKETS_V8_FLAGS=keep` all.
 */
import { setFlagsFromString } from 'node:v8'
import { isMainThread } from 'node:worker_threads'

const chosen = `${process.env.NODE_OPTIONS} ${process.execArgv.join(' ')}`.replaceAll('_', '-')

/** `option` with its dashes. */
export function mayChange(option: string): boolean {
  return isMainThread && process.env.FASTSOCKETS_V8_FLAGS !== 'keep' && !chosen.includes(option)
}

export function setOption(option: string, value: number): void {
  setFlagsFromString(`${option}=${value}`)
}
