/** What the command line tool says of itself: the help of every command and subcommand, read once. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { plainEnvironment } from '../support/child.ts'

const run = promisify(execFile)
const CLI = fileURLToPath(new URL('../../fastsockets/cli/main.js', import.meta.url))

/** By the words behind `fastsockets`: '', 'names', 'names ls', ... */
export type Helps = ReadonlyMap<string, string>

/** Level by level, the commands of a level side by side. */
export async function readHelps(): Promise<Helps> {
  const helps = new Map<string, string>()
  let level = ['']
  while (level.length > 0) {
    await Promise.all(level.map(async command => helps.set(command, await readHelp(command))))
    level = level.flatMap(command => subcommandsOf(helps, command).map(name => `${command} ${name}`.trim()))
  }
  return helps
}

async function readHelp(command: string): Promise<string> {
  const words = command.split(' ').filter(word => word !== '')
  const { stdout } = await run(process.execPath, [CLI, ...words, '--help'], { env: plainEnvironment() })
  return stdout
}

export function subcommandsOf(helps: Helps, command: string): string[] {
  const [, list = ''] = /^Commands:\n((?: {2}.*\n)+)/m.exec(helpOf(helps, command)) ?? []
  return [...list.matchAll(/^ {2}([a-z][\w-]*)/gm)]
    .map(([, name = '']) => name)
    .filter(name => name !== 'help')
}

export function optionsOf(helps: Helps, command: string): string[] {
  const [, list = ''] = /^Options:\n((?: {2}.*\n)+)/m.exec(helpOf(helps, command)) ?? []
  return [...list.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, option = '']) => option)
}

/** What is wrong with a command line of ours; undefined if nothing is. */
export function faultOfCommand(helps: Helps, line: string): string | undefined {
  const [, words = ''] =
    /(?:^|npx |\s)fastsockets ((?:[a-z].*|--[a-z].*))$/.exec(line.replace(/\s*(#|&|\|).*$/, '')) ?? []
  const parts = words.split(/\s+/).filter(part => part !== '')
  if (parts.length === 0 || /^[^a-z-]/.test(parts[0] ?? '')) return undefined
  let command = ''
  while (parts[0] !== undefined && subcommandsOf(helps, command).includes(parts[0]))
    command = `${command} ${parts.shift()}`.trim()
  if (command === '') return /^-/.test(parts[0] ?? '') ? undefined : `no command ${parts[0]}`
  const end = parts.indexOf('--')
  const asked = (end === -1 ? parts : parts.slice(0, end)).filter(part => part.startsWith('--'))
  const known = [...optionsOf(helps, command), ...optionsOf(helps, command.split(' ')[0] ?? '')]
  const wrong = asked.map(option => option.replace(/=.*/, '')).find(option => !known.includes(option))
  return wrong && `no option ${wrong} of fastsockets ${command}`
}

function helpOf(helps: Helps, command: string): string {
  const help = helps.get(command)
  if (help === undefined) throw new Error(`the tool has no command ${command}`)
  return help
}
