/** `fastsockets named`: the daemon of the name service. */
import { Command, Option } from 'commander'
import { flagOf, LEAVES, type Leaf, loadDaemon, type Settings } from '../../../nameservice/named.ts'
import { FAILURE, OK, USAGE_ERROR } from '../exit-codes.ts'
import { packageVersion } from '../package-info.ts'
import { checkHealth, type Health } from './health-check.ts'

const CONFIG_VARIABLE = 'FASTSOCKETS_NAMED_CONFIG'

const NOTES = `
Every setting may be in the configuration file (YAML or JSON), in the environment, or a flag; the later wins.
The setting "store.path" is the variable FASTSOCKETS_NAMED_STORE_PATH and the flag --store-path. Lists are
written with commas. --print-config prints what comes of it, as a configuration file.

SIGTERM and SIGINT stop the daemon, SIGHUP reads tokens and certificates anew.

--health-check asks over the unix socket, or, if "socket.path" is none, over TCP; it needs no token.

Examples:
  $ fastsockets named                                        for this user, or for the host if root
  $ fastsockets named --config /etc/fastsockets/named.yaml
  $ fastsockets named --store-kind memory --socket-path /tmp/named.sock
  $ fastsockets named --health-check                         exit code 0 if the daemon there is ready

Exit codes: 0 it was stopped, 1 it could not start or is not ready, 2 its settings are not right.`

interface NamedOptions {
  readonly config?: string
  readonly printConfig?: boolean
  readonly healthCheck?: Health
}

export function namedCommand(): Command {
  const command = new Command('named')
    .description('the daemon of the name service: names of endpoints, under leases')
    .addOption(new Option('--config <file>', 'configuration file').env(CONFIG_VARIABLE))
    .option('--print-config', 'print the configuration and exit')
    .addOption(
      new Option('--health-check [what]', 'ask the daemon that listens there whether it is ready, and exit')
        .choices(['ready', 'live'])
        .preset('ready'),
    )
    .addHelpText('after', NOTES)
  for (const leaf of LEAVES) command.addOption(optionOf(leaf))
  return command.action(async (options: NamedOptions) => {
    process.exitCode = await run(options, flagsOf(command))
  })
}

function optionOf(leaf: Leaf): Option {
  const { description, value, choices } = leaf
  const more = [
    ...(choices === undefined ? [] : [choices.join(', ')]),
    ...(value === '' || (Array.isArray(value) && value.length === 0) ? [] : [`default: ${value}`]),
  ]
  const text = more.length === 0 ? description : `${description} (${more.join('; ')})`
  return new Option(`${flagOf(leaf)} <${leaf.type === 'integer' ? 'number' : 'value'}>`, text)
}

/** The options of the command line, by the names of the settings. */
function flagsOf(command: Command): Map<string, string> {
  const values = command.opts<Record<string, string>>()
  const flags = new Map<string, string>()
  for (const leaf of LEAVES) {
    const value = values[new Option(`${flagOf(leaf)} <value>`).attributeName()]
    if (value !== undefined) flags.set(leaf.path.join('.'), value)
  }
  return flags
}

async function run(
  { config, printConfig, healthCheck }: NamedOptions,
  flags: Map<string, string>,
): Promise<number> {
  const { Daemon, openLog, loadSettings, parseListen, printSettings, SettingsError } = await loadDaemon()
  let settings: Settings
  try {
    settings = await loadSettings(flags, config)
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    process.stderr.write(`fastsockets named: ${error.message}\n`)
    return USAGE_ERROR
  }
  if (printConfig) {
    process.stdout.write(await printSettings(settings))
    return OK
  }
  if (healthCheck !== undefined) return await checkHealth(settings, healthCheck, parseListen)

  const { log, flush } = openLog(settings.log.level)
  const stop = new Promise<string>(resolve => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve)
  })
  try {
    const { makeNamesPage } = await import('./names-page.ts')
    const daemon = new Daemon({ settings, log, version: packageVersion(), makePage: makeNamesPage })
    process.on('SIGHUP', () => void daemon.reload())
    await daemon.start()
    await daemon.stop(await stop)
    return OK
  } catch (error) {
    const reason = explain(error as NodeJS.ErrnoException)
    log.fatal({ code: (error as NodeJS.ErrnoException).code, reason }, 'the daemon cannot run')
    process.stderr.write(`fastsockets named: ${reason}\n`)
    return error instanceof SettingsError ? USAGE_ERROR : FAILURE
  } finally {
    await flush()
  }
}

/** Our own errors are shown in full; those of the system name paths, and are shown by their code. */
function explain({ code = '', message, syscall }: NodeJS.ErrnoException): string {
  return syscall === undefined ? message : `${syscall} failed: ${code}`
}
