/** The hosts of bench/two-hosts.ts, and programs on them. */
import type { Host } from '../../bench/two-hosts.ts'
import { Child, plainEnvironment } from './child.ts'

export * from '../../bench/two-hosts.ts'

/** Runs a fixture on that host. */
export function childOn(
  t: { teardown(end: () => Promise<void>): void },
  { namespace }: Host,
  fixture: URL,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Child {
  return new Child(t, fixture, args, {
    execPath: 'ip',
    execArgv: ['netns', 'exec', namespace, process.execPath],
    env: { ...plainEnvironment(), ...env },
  })
}
