/** `fastsockets explain`: what would become of a connection, and why. */
import { resolve } from 'node:path'
import { Command } from 'commander'
import { type Explanation, explain } from '../../explain.ts'
import { FAILURE, OK } from '../exit-codes.ts'
import { type HostPort, parseHostPort } from '../host-port.ts'

const EXAMPLES = `
Examples:
  $ fastsockets explain localhost:8080
  $ fastsockets explain db.internal:5432 --program /srv/app/server.js
  $ fastsockets explain [::1]:8080 --json

Does what a relinked client of this user would do, short of the connection itself.

Exit codes: 0 the connection would be fast, 1 it would not.`

interface ExplainOptions {
  readonly program?: string
  readonly json?: boolean
}

export function explainCommand(): Command {
  return new Command('explain')
    .description('what would become of a connection, and why')
    .argument('<host:port>', 'the server', parseHostPort)
    .option('--program <path>', 'the client, as rules of the policy see it')
    .option('--json', 'print the explanations as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async ({ host, port }: HostPort, { program, json }: ExplainOptions) => {
      const explanations = await explain(host, port, program && resolve(program))
      if (json) console.log(JSON.stringify(explanations, undefined, 2))
      else for (const explanation of explanations) console.log(describe(explanation, port))
      process.exitCode = explanations.some(({ outcome }) => outcome === 'shm') ? OK : FAILURE
    })
}

export function describe({ address, outcome, policy, reason }: Explanation, port: number): string {
  const place = address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
  const lines = [
    `${place}  ${outcome}`,
    `    policy  ${policy.use}: ${policy.because}`,
    ...(reason === undefined ? [] : [`    reason  ${reason.code}: ${reason.text}`]),
  ]
  return lines.join('\n')
}
