/**
 * `fastsockets bench`: starts the bench (`bench/main.ts`) as a program of its own. Nothing here imports it, so modules
 * of this tool do not disturb the measurements.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { launch } from '../run/launch.ts'

const MAIN = fileURLToPath(new URL('../../../bench/main.js', import.meta.url))

export function benchCommand(): Command {
  const command = new Command('bench')
    .description('measure every way between two processes, beside plain node:net over TCP')
    .argument('[args...]')
    .allowUnknownOption()
    .passThroughOptions()
    .action(async (args: string[]) => {
      process.exitCode = await launch(process.execPath, [MAIN, ...args], process.env)
    })
  // Only the bench knows its options and suites. `bench --help` and `help bench` both come here.
  command.helpInformation = () => execFileSync(process.execPath, [MAIN, '--help'], { encoding: 'utf8' })
  return command
}
