/**
 * The daemon, for the command line tool: a door of its own, because programs that only ask for names import index.ts, and
 * load nothing of this. Even the tool loads the daemon only when it is to run.
 */
export { flagOf, LEAVES, type Leaf, type Settings, variableOf } from './daemon/settings-schema.ts'

export async function loadDaemon() {
  const [{ Daemon }, { openLog }, settings] = await Promise.all([
    import('./daemon/daemon.ts'),
    import('./daemon/daemon-log.ts'),
    import('./daemon/settings.ts'),
  ])
  return { Daemon, openLog, ...settings }
}
