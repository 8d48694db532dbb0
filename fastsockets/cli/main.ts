#!/usr/bin/env node
/** The command line tool `fastsockets`. */
import { Command, CommanderError } from 'commander'
import { FAILURE, OK, USAGE_ERROR } from './exit-codes.ts'
import { packageVersion } from './package-info.ts'

/** Only the requested command is loaded: programs and services wait for it to start. */
const LOADERS: Readonly<Record<string, () => Promise<Command>>> = {
  run: async () => (await import('./run/run-command.ts')).runCommand(),
  doctor: async () => (await import('./doctor/doctor-command.ts')).doctorCommand(),
  status: async () => (await import('./status/status-command.ts')).statusCommand(),
  ui: async () => (await import('./ui/ui-command.ts')).uiCommand(),
  policy: async () => (await import('./policy/policy-command.ts')).policyCommand(),
  explain: async () => (await import('./explain/explain-command.ts')).explainCommand(),
  perf: async () => (await import('./perf/perf-command.ts')).perfCommand(),
  bench: async () => (await import('./bench/bench-command.ts')).benchCommand(),
  demo: async () => (await import('./demo/demo-command.ts')).demoCommand(),
  named: async () => (await import('./named/named-command.ts')).namedCommand(),
  nic: async () => (await import('./nic/nic-command.ts')).nicCommand(),
  names: async () => (await import('./names/names-command.ts')).namesCommand(),
}

const EXAMPLES = `
Examples:
  $ fastsockets run -- node server.js      relink a program, and every Node program that it starts
  $ fastsockets doctor                     can this machine do it, and if not, why not
  $ fastsockets status                     what the relinked processes of this user are doing
  $ fastsockets ui                         the same as a page in the browser
  $ fastsockets explain localhost:8080     would a connection be fast, and if not, why not
  $ fastsockets policy check               is the policy file right
  $ fastsockets perf server 7000           measure with it: fastsockets perf ping-pong localhost:7000
  $ fastsockets demo                       unmodified programs from npm, plain and relinked, compared
  $ fastsockets bench --quick              every way between two processes, measured
  $ fastsockets named                      the daemon of the name service
  $ fastsockets names ls                   the names that it has

Exit codes: 0 all is well, 1 something failed, 2 this is not how the command is used.
"fastsockets run" exits with the exit code of its command.`

async function main(): Promise<void> {
  const program = new Command('fastsockets')
    .description('Unmodified Node programs over shared memory on one host, and over TCP everywhere else.')
    .version(packageVersion())
    .enablePositionalOptions()
    .showHelpAfterError('(add --help for how to use it)')
    .addHelpText('after', EXAMPLES)
    .exitOverride()
  const [, , wanted = ''] = process.argv
  const loaders = Object.hasOwn(LOADERS, wanted) ? [LOADERS[wanted]] : Object.values(LOADERS)
  for (const load of loaders) if (load !== undefined) program.addCommand(inherit(await load(), program))
  try {
    await program.parseAsync()
  } catch (error) {
    process.exitCode = exitCodeOf(error)
    // Commander has printed its own errors already.
    if (!(error instanceof CommanderError)) console.error(`fastsockets: ${(error as Error).message}`)
  }
}

/** How usage errors are handled, for a command and its subcommands. */
function inherit(command: Command, parent: Command): Command {
  command.copyInheritedSettings(parent)
  for (const below of command.commands) inherit(below, command)
  return command
}

function exitCodeOf(error: unknown): number {
  if (!(error instanceof CommanderError)) return FAILURE
  return error.exitCode === OK ? OK : USAGE_ERROR
}

// The reader of our output may end first (`fastsockets doctor | head -1`, `fastsockets status --watch | head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})
// If stderr is closed too, the exit code is left.
process.stderr.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

await main()
