/**
 * The daemon, for the command line tool. A separate module, because programs that only look up names import
 * index.ts and load nothing of the daemon. The tool itself loads the daemon only to run it.
 */
export type { DaemonPage } from './daemon/daemon-page.ts'
export { flagOf, LEAVES, type Leaf, type Settings, variableOf } from './daemon/settings-schema.ts'
export type { DaemonView } from './daemon-view.ts'

export async function loadDaemon() {
  const [{ Daemon }, { openLog }, settings] = await Promise.all([
    import('./daemon/daemon.ts'),
    import('./daemon/daemon-log.ts'),
    import('./daemon/settings.ts'),
  ])
  return { Daemon, openLog, ...settings }
}
