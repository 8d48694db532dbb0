/** Commands of the bench: how they end. */
import { type Command, CommanderError } from 'commander'
import { FAILURE, OK, USAGE_ERROR } from '../fastsockets/cli/exit-codes.ts'

/** Parses the arguments of this process and runs the command. Its errors go to standard error, and become the exit code. */
export async function runCommand(command: Command): Promise<void> {
  try {
    await command.exitOverride().parseAsync()
  } catch (error) {
    // Commander has printed its own errors already.
    if (error instanceof CommanderError) process.exitCode = error.exitCode === OK ? OK : USAGE_ERROR
    else {
      process.exitCode = FAILURE
      process.stderr.write(`${command.name()}: ${(error as Error).message}\n`)
    }
  }
}
