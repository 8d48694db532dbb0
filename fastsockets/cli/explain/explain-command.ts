/** `fastsockets explain`: the transport that a connection would get, and why. */
import { resolve } from 'node:path'
import { Command } from 'commander'
import { shownJson, shownLines } from '../../../nic/shown-text.ts'
import { programOf } from '../../policy/own-policy.ts'
import { FAILURE, OK } from '../exit-codes.ts'
import { type HostPort, parseUnlessUnix } from '../host-port.ts'
import { type Explanation, explain, explainUnix } from './explain.ts'

const EXAMPLES = `
Examples:
  $ fastsockets explain localhost:8080
  $ fastsockets explain db.internal:5432 --program /srv/app/server.js
  $ fastsockets explain [::1]:8080 --json
  $ fastsockets explain unix:/run/app.sock
  $ fastsockets explain unix:@an-abstract-name

Does what a relinked client of this user would do, short of the connection itself.

Exit codes: 0 the connection would be fast, 1 it would not.`

/** Outcomes other than the fast ones. */
const SLOW = ['tcp', 'pipe', 'fails']

/** A unix socket, by its name in rules. */
interface UnixName {
  readonly name: string
}

interface ExplainOptions {
  readonly program?: string
  readonly json?: boolean
}

export function explainCommand(): Command {
  return new Command('explain')
    .description('which transport a connection would get, and why')
    .argument('<server>', 'host:port, or unix:path', parseServer)
    .option('--program <path>', 'the client, as it would be started; rules are held against the file itself')
    .option('--json', 'print the explanations as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (server: HostPort | UnixName, { program, json }: ExplainOptions) => {
      const path = program && programOf(resolve(program))
      const explanations =
        'name' in server
          ? [await explainUnix(server.name, path)]
          : await explain(server.host, server.port, path)
      if (json) console.log(shownJson(explanations, 2))
      else for (const explanation of explanations) console.log(describe(explanation, server))
      process.exitCode = explanations.some(({ outcome }) => !SLOW.includes(outcome)) ? OK : FAILURE
    })
}

/** `unix:` and an absolute or relative path, or `@` and an abstract name; else as `parseUnlessUnix` wants it. */
function parseServer(text: string): HostPort | UnixName {
  const [, path] = /^unix:(.+)$/s.exec(text) ?? []
  if (path === undefined) return parseUnlessUnix(text)
  return { name: path.startsWith('@') ? path : resolve(path) }
}

function describe({ address, outcome, policy, reason }: Explanation, server: HostPort | UnixName): string {
  const host = address.includes(':') ? `[${address}]` : address
  const place = 'name' in server ? address : `${host}:${server.port}`
  const lines = [
    `${place}  ${outcome}`,
    `    policy  ${policy.use}: ${policy.because}`,
    ...(reason === undefined ? [] : [`    reason  ${reason.code}: ${reason.text}`]),
  ]
  return shownLines(lines)
}
