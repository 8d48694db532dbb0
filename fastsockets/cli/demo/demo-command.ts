/** `fastsockets demo`: shows the effect of relinking on this machine. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { FAILURE } from '../exit-codes.ts'
import { exitOnInterrupt } from '../interrupts.ts'
import { type DemoResult, runDemo } from './demo.ts'
import { resultTable } from './result-table.ts'
import { MEGABYTE, Workspace } from './workspace.ts'

const SIZE_MB_DEFAULT = 256
/** The HTTP client keeps the file in one Buffer. */
const SIZE_MB_MAX = 2048
const PACKAGES: readonly string[] = ['ftp-srv', 'basic-ftp']

const EXAMPLES = `
Examples:
  $ fastsockets demo
  $ fastsockets demo --size 512
  $ fastsockets demo --json > demo.json    progress goes to stderr, the result to standard output

The programs are an FTP server and client (ftp-srv and basic-ftp from npm) and an HTTP server and client
(node:http). They know nothing of Fast Sockets. Every transfer is checked with SHA-256, and the wire of every
socket is looked at: plain runs must be on TCP, relinked ones on shared memory.

Exit codes: 0 all of that was so, 1 a checksum differed, a wire was not the right one, or a program failed.`

interface DemoOptions {
  readonly size: number
  readonly keep?: boolean
  readonly json?: boolean
}

export function demoCommand(): Command {
  return new Command('demo')
    .description('run unmodified programs from npm, plain and relinked in turn, and compare')
    .option('--size <MB>', `size of the file, at most ${SIZE_MB_MAX}`, parseSize, SIZE_MB_DEFAULT)
    .option('--keep', 'do not remove the folder with the file')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', EXAMPLES)
    .action(demo)
}

async function demo(options: DemoOptions): Promise<void> {
  exitOnInterrupt()
  try {
    assertInstalled(PACKAGES)
    const size = options.size * MEGABYTE
    const workspace = Workspace.open(size, options.keep ?? false)
    const result = await runDemo(workspace, size)
    if (options.json) console.log(JSON.stringify({ ok: true, ...result }, undefined, 2))
    else printResult(result)
    if (options.keep) console.error(`The file is kept in ${workspace.folder}`)
  } catch (error) {
    const { message } = error as Error
    console.error(`fastsockets demo: ${message}`)
    if (options.json) console.log(JSON.stringify({ ok: false, error: message }, undefined, 2))
    process.exitCode = FAILURE
  }
}

function printResult({ size, rounds, seconds, comparisons }: DemoResult): void {
  console.log(resultTable(comparisons))
  console.log(
    `A file of ${size / MEGABYTE} MiB; medians of ${rounds} alternating rounds; ${seconds.toFixed(0)} s in all.`,
  )
  console.log('Every SHA-256 was right; every byte of the relinked runs went through shared memory (shm).')
}

function parseSize(text: string): number {
  const size = Number(text)
  if (Number.isInteger(size) && size >= 1 && size <= SIZE_MB_MAX) return size
  throw new InvalidArgumentError(`It is a whole number of MB between 1 and ${SIZE_MB_MAX}.`)
}

/** Not dependencies of this package: only the demo needs them. */
function assertInstalled(names: readonly string[]): void {
  if (names.every(isInstalled)) return
  throw new Error(
    `the demo needs two packages from npm; install them with\n\n  npm install ${names.join(' ')}\n`,
  )
}

/** `import.meta.resolve` came with Node 20.6 only, and `require.resolve` finds no package that is all ES modules. */
function isInstalled(name: string): boolean {
  const folders = createRequire(import.meta.url).resolve.paths(name) ?? []
  return folders.some(folder => existsSync(join(folder, name, 'package.json')))
}
