/**
 * `fastsockets bench`: starts the measuring room, a program of its own (`bench/main.ts`). Nothing below imports it, and
 * what it measures is not disturbed by what this tool has loaded.
 */
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { launch } from '../run/launch.ts'

const MAIN = new URL('../../../bench/main.js', import.meta.url)

export function benchCommand(): Command {
  return new Command('bench')
    .description('measure every way between two processes, beside plain node:net over TCP')
    .argument('[args...]', 'see: fastsockets bench --help')
    .helpOption(false)
    .allowUnknownOption()
    .passThroughOptions()
    .action(async (args: string[]) => {
      process.exitCode = await launch(process.execPath, [fileURLToPath(MAIN), ...args], process.env)
    })
}
