/** `fastsockets run`: a command whose Node programs are relinked. */
import { Command } from 'commander'
import { DISABLE_VARIABLE } from '../../host/environment.ts'
import { relinkedNodeOptions } from '../relink.ts'
import { launch } from './launch.ts'

interface RunOptions {
  readonly tcp?: boolean
  readonly debug?: string | boolean
}

const EXAMPLES = `
Examples:
  $ fastsockets run -- node server.js
  $ fastsockets run -- npm start
  $ fastsockets run --tcp -- node client.js      the same over TCP, for comparison
  $ fastsockets run --debug -- node client.js    say on stderr what is relinked and what is not
  $ fastsockets run --debug fastsockets:peers -- node client.js

The command is run with the same standard input and output. SIGINT, SIGTERM and SIGHUP are passed on to it.
The exit code is the command's own; 128 plus the signal's number if a signal ended it, 127 if it was not
found, 126 if it cannot be run.`

export function runCommand(): Command {
  return new Command('run')
    .description('run a command; it and every Node program that it starts are relinked')
    .usage('[options] -- <command> [args...]')
    .argument('<command>', 'what to run')
    .argument('[args...]', 'its arguments')
    .option('--tcp', 'keep everything on TCP')
    .option('--debug [namespaces]', 'print logs to stderr (default: fastsockets:*)')
    .passThroughOptions()
    .addHelpText('after', EXAMPLES)
    .action(async (command: string, args: string[], options: RunOptions) => {
      process.exitCode = await launch(command, args, environment(options))
    })
}

function environment({ tcp, debug }: RunOptions): NodeJS.ProcessEnv {
  return {
    ...process.env,
    NODE_OPTIONS: relinkedNodeOptions(process.env.NODE_OPTIONS),
    ...(tcp ? { [DISABLE_VARIABLE]: '1' } : {}),
    ...(debug ? { DEBUG: debug === true ? 'fastsockets:*' : debug } : {}),
  }
}
