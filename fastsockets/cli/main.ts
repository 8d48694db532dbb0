#!/usr/bin/env node
/** The command line tool `fastsockets`. */
import { Command, CommanderError } from 'commander'
import { demoCommand } from './demo/demo-command.ts'
import { doctorCommand } from './doctor/doctor-command.ts'
import { FAILURE, OK, USAGE_ERROR } from './exit-codes.ts'
import { packageVersion } from './package-info.ts'
import { runCommand } from './run/run-command.ts'

const EXAMPLES = `
Examples:
  $ fastsockets run -- node server.js      relink a program, and every Node program that it starts
  $ fastsockets doctor                     can this machine do it, and if not, why not
  $ fastsockets demo                       unmodified programs from npm, plain and relinked, compared

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
  for (const command of [runCommand(), doctorCommand(), demoCommand()]) {
    program.addCommand(command.copyInheritedSettings(program))
  }
  try {
    await program.parseAsync()
  } catch (error) {
    process.exitCode = exitCodeOf(error)
    // Commander has printed its own errors already.
    if (!(error instanceof CommanderError)) console.error(`fastsockets: ${(error as Error).message}`)
  }
}

function exitCodeOf(error: unknown): number {
  if (!(error instanceof CommanderError)) return FAILURE
  return error.exitCode === OK ? OK : USAGE_ERROR
}

// Whoever reads our output may have seen enough (`fastsockets doctor | head -1`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

await main()
