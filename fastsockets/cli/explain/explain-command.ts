/** `fastsockets explain`: the transport that a connection would get, and why. */
import { resolve } from 'node:path'
import { Command } from 'commander'
import { shownJson, shownLines } from '../../../nic/shown-text.ts'
import { programOf } from '../../policy/own-policy.ts'
import { FAILURE, OK } from '../exit-codes.ts'
import { type HostPort, parseUnlessUnix } from '../host-port.ts'
import { parsePid } from '../parse-pid.ts'
import { type Explanation, explain, explainUnix } from './explain.ts'
import { becomeLike, type Connections } from './running.ts'

const EXAMPLES = `
Examples:
  $ fastsockets explain localhost:8080
  $ fastsockets explain db.internal:5432 --program /srv/app/server.js
  $ fastsockets explain [::1]:8080 --json
  $ fastsockets explain localhost:8080 --pid 4711       as process 4711 would
  $ fastsockets explain unix:/run/app.sock
  $ fastsockets explain unix:@an-abstract-name

Does what a relinked client of this user would do, short of the connection itself. With --pid, what that process would do
with its policy, variables and program, and which connections it has to the server now.

Exit codes: 0 the connection would be fast, or become so; 1 it would not.`

/** Outcomes other than the fast ones. */
const SLOW = ['tcp', 'pipe', 'fails']

/** A unix socket, by its name in rules. */
interface UnixName {
  readonly name: string
}

interface ExplainOptions {
  readonly program?: string
  readonly pid?: number
  readonly json?: boolean
}

export function explainCommand(): Command {
  return new Command('explain')
    .description('which transport a connection would get, and why')
    .argument('<server>', 'host:port, or unix:path', parseServer)
    .option('--program <path>', 'the client, as it would be started; rules are held against the file itself')
    .option('--pid <pid>', 'for a relinked process of this user that runs', parsePid)
    .option('--json', 'print the explanations as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (server: HostPort | UnixName, { program, pid, json }: ExplainOptions) => {
      const running = pid === undefined ? undefined : becomeLike(pid)
      const path = program === undefined ? running?.program : programOf(resolve(program))
      const found =
        'name' in server
          ? [await explainUnix(server.name, path)]
          : await explain(server.host, server.port, path)
      const explanations = found.map(one => ({
        ...one,
        ...(running && {
          connections: running.connectionsTo(
            'name' in server ? server.name : one.address,
            'name' in server ? 0 : server.port,
          ),
        }),
      }))
      if (json) console.log(shownJson(explanations, 2))
      else for (const explanation of explanations) console.log(describe(explanation, server))
      process.exitCode = explanations.some(willBeFast) ? OK : FAILURE
    })
}

/** `unix:` and an absolute or relative path, or `@` and an abstract name; else as `parseUnlessUnix` wants it. */
function parseServer(text: string): HostPort | UnixName {
  const [, path] = /^unix:(.+)$/s.exec(text) ?? []
  if (path === undefined) return parseUnlessUnix(text)
  return { name: path.startsWith('@') ? path : resolve(path) }
}

function willBeFast({ outcome, reason }: Explanation): boolean {
  return !SLOW.includes(outcome) || (outcome !== 'fails' && reason?.code === 'STARTED_ON_TCP')
}

interface Shown extends Explanation {
  readonly connections?: readonly Connections[]
}

function describe(
  { address, outcome, policy, reason, start, connections }: Shown,
  server: HostPort | UnixName,
): string {
  const host = address.includes(':') ? `[${address}]` : address
  const place = 'name' in server ? address : `${host}:${server.port}`
  const lines = [
    `${place}  ${outcome}`,
    `    policy  ${policy.use}: ${policy.because}`,
    ...(start === undefined ? [] : [`    start   ${start.on}: ${start.because}`]),
    ...(reason === undefined ? [] : [`    reason  ${reason.code}: ${reason.text}`]),
    ...(connections === undefined
      ? []
      : [`    now     ${connections.map(describeNow).join(', ') || 'no connection'}`]),
  ]
  return shownLines(lines)
}

function describeNow({ transport, reason, count }: Connections): string {
  return `${count} over ${transport}${reason === undefined ? '' : ` (${reason})`}`
}
