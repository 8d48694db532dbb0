/** The two ways in which the demo runs the same programs. */
import { START_VARIABLE } from '../../policy/start-variable.ts'
import { addFlag, plainNodeOptions, preloadFlag, relinkedNodeOptions } from '../relink.ts'
import { WITNESS_VARIABLE } from './witness-report.ts'

export const RUN_MODES = ['plain', 'relinked'] as const
export type RunMode = (typeof RUN_MODES)[number]

/** The wire that every byte of such a run must use. */
export const WIRE_OF_MODE: Record<RunMode, string> = { plain: 'tcp', relinked: 'shm' }

const WITNESS_FLAG = preloadFlag(new URL('./witness.js', import.meta.url))

/** The only difference between plain and relinked runs. Relinked ones start fast: the demo proves which wire each byte has used. */
export function environmentOf(
  mode: RunMode,
  witnessFolder: string,
  environment: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv {
  const existing = environment.NODE_OPTIONS
  const nodeOptions = mode === 'relinked' ? relinkedNodeOptions(existing) : plainNodeOptions(existing)
  return {
    ...environment,
    [START_VARIABLE]: 'fast',
    NODE_OPTIONS: addFlag(nodeOptions, WITNESS_FLAG),
    [WITNESS_VARIABLE]: witnessFolder,
  }
}
