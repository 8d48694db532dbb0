/** `fastsockets ui`: a live page of this host's relinked processes. */
import { createWriteStream, type WriteStream } from 'node:fs'
import { Command, InvalidArgumentError } from 'commander'
import { OK } from '../exit-codes.ts'
import { History } from './history.ts'
import { eventText, PageHandler, pageFiles } from './page-handler.ts'
import { PageServer } from './page-server.ts'
import type { Snapshot } from './snapshot-types.ts'
import { liveSnapshots, recordedSnapshots } from './sources.ts'

const WORDS = {
  title: 'Fast Sockets',
  script: 'main',
  waiting: 'Waiting for the first look at this host.',
  command: 'fastsockets status',
}

const EXAMPLES = `
Examples:
  $ fastsockets ui                          prints the address to open in a browser
  $ fastsockets ui --port 7480              a port that stays the same, for a tunnel: ssh -L 7480:127.0.0.1:7480 HOST
  $ fastsockets ui --record today.jsonl     also writes what it shows to a file
  $ fastsockets ui --replay today.jsonl     shows that file instead of this host

It listens on 127.0.0.1 alone. The address has a random token: a browser with it sees what runs here, and can change nothing.

Exit codes: 0 Ctrl-C has ended it, 1 it cannot listen, or the file cannot be read.`

interface UiOptions {
  readonly port: number
  readonly record?: string
  readonly replay?: string
}

export function uiCommand(): Command {
  return new Command('ui')
    .description('a page in the browser: who talks to whom, how fast, and why not faster')
    .option(
      '--port <port>',
      'listen on this port of 127.0.0.1; 0 leaves the choice to the system',
      parsePort,
      0,
    )
    .option('--record <file>', 'append each snapshot to a file, a line each')
    .option('--replay <file>', 'show the snapshots of a file')
    .addHelpText('after', EXAMPLES)
    .action(async (options: UiOptions) => {
      await show(options)
      process.exitCode = OK
    })
}

async function show({ port, record, replay }: UiOptions): Promise<void> {
  const history = new History()
  let last: Snapshot | undefined
  const page = new PageHandler({
    files: pageFiles(WORDS, ['charts', 'graph', 'format', 'tables', 'table', 'live']),
    printer: 'fastsockets ui',
    greeting: () => [
      eventText('history', history.all),
      ...(last === undefined ? [] : [eventText('snapshot', last)]),
    ],
  })
  const server = new PageServer(page)
  const ending = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => ending.abort())
  const file = record === undefined ? undefined : await openRecord(record)
  console.log(await server.listen(port))
  try {
    const snapshots =
      replay === undefined ? liveSnapshots(ending.signal) : recordedSnapshots(replay, ending.signal)
    for await (const snapshot of snapshots) {
      last = snapshot
      history.add(snapshot.totals)
      file?.write(`${JSON.stringify(snapshot)}\n`)
      page.send(eventText('snapshot', snapshot))
    }
    // The last snapshot of a file stays.
    if (replay !== undefined && !ending.signal.aborted) await aborted(ending.signal)
  } finally {
    file?.end()
    server.close()
  }
}

/** Rejects if the file cannot be written. Only its owner may read what ran here. */
async function openRecord(path: string): Promise<WriteStream> {
  const file = createWriteStream(path, { flags: 'a', mode: 0o600 })
  await new Promise<void>((resolve, reject) => file.once('open', () => resolve()).once('error', reject))
  return file
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => signal.addEventListener('abort', () => resolve()))
}

function parsePort(text: string): number {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 0xffff) return port
  throw new InvalidArgumentError('it must be within 0..65535')
}
