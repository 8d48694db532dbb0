/** The daemon's configuration: defaults, then a file, then the environment, then flags. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { readTrustedFile, type TrustedFileOptions, UntrustedFileError } from '../../nic/trusted-file.ts'
import { defaultSocketPath } from '../socket-path.ts'
import { isPlainlyRight } from './settings-check.ts'
import { LEAVES, type Leaf, SETTINGS_SCHEMA, type Settings, variableOf } from './settings-schema.ts'
import { compile } from './validation.ts'

/** The configuration cannot be used. The message has the mistake and its source. */
export class SettingsError extends Error {
  readonly code = 'ERR_SETTINGS'
}

const SYSTEM_STATE = '/var/lib'
const STORE = 'fastsockets/named/store'
/** Most bytes of a configuration file: a larger one is a mistake. */
const SETTINGS_SIZE_MAX = 1024 * 1024

type Tree = { [key: string]: unknown }

const check = compile(SETTINGS_SCHEMA)

/** `flags`: text by the dotted path of the setting. */
export async function loadSettings(
  flags: ReadonlyMap<string, string>,
  file: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Settings> {
  const merged = defaults(env)
  if (file !== undefined)
    merge(merged, checked(await readYaml(file, { sizeMax: SETTINGS_SIZE_MAX }), 'the configuration file'))
  for (const leaf of LEAVES) {
    const value = env[variableOf(leaf)]
    if (value !== undefined) merge(merged, checked(treeOf(leaf, value), `the variable ${variableOf(leaf)}`))
  }
  for (const leaf of LEAVES) {
    const value = flags.get(leaf.path.join('.'))
    if (value !== undefined) merge(merged, checked(treeOf(leaf, value), 'the command line'))
  }
  const settings = merged as unknown as Settings
  checkTogether(settings)
  return settings
}

/** Prints the settings as a configuration file. */
export async function printSettings(settings: Settings): Promise<string> {
  const { stringify } = await import('yaml')
  return stringify(settings)
}

/** Reason for which a file cannot be used, without the file's name. */
export function reasonOfFile(error: unknown): string {
  return error instanceof UntrustedFileError ? error.problem : `${(error as NodeJS.ErrnoException).code}`
}

/** Reads a YAML or JSON file. Its errors contain neither the file's name nor its content. */
export async function readYaml(path: string, options: TrustedFileOptions): Promise<unknown> {
  let text: string
  try {
    text = readTrustedFile(path, options).toString()
  } catch (error) {
    const isOpen = error instanceof UntrustedFileError
    throw new SettingsError(`a file ${isOpen ? '' : 'cannot be read: '}${reasonOfFile(error)}`)
  }
  // On demand: most daemons read no file.
  const { parseDocument } = await import('yaml')
  const document = parseDocument(text, { prettyErrors: false, logLevel: 'error' })
  const [mistake] = document.errors
  if (mistake !== undefined) throw new SettingsError(`a file is not YAML: ${mistake.code}`)
  try {
    return document.toJS({ maxAliasCount: 0 })
  } catch {
    throw new SettingsError('a file has an alias, which is not followed')
  }
}

function defaults(env: NodeJS.ProcessEnv): Tree {
  const tree: Tree = {}
  for (const leaf of LEAVES) merge(tree, treeFor(leaf, leaf.value))
  merge(tree, { socket: { path: defaultSocketPath(env) }, store: { path: defaultStorePath(env) } })
  return tree
}

/** The folder that systemd made for the service, or the user's own. Root uses its own only if XDG_STATE_HOME is set. */
function defaultStorePath(env: NodeJS.ProcessEnv): string {
  const { STATE_DIRECTORY, XDG_STATE_HOME } = env
  if (STATE_DIRECTORY) return join(STATE_DIRECTORY.split(':')[0] as string, 'store')
  if (XDG_STATE_HOME) return join(XDG_STATE_HOME, STORE)
  return join(process.geteuid?.() === 0 ? SYSTEM_STATE : ownState(), STORE)
}

/** A user without a home must set the store's path: the system's folder belongs to another user. */
function ownState(): string {
  try {
    return join(homedir(), '.local/state')
  } catch {
    return SYSTEM_STATE
  }
}

function checked(value: unknown, source: string): Tree {
  const tree = value ?? {}
  if (isPlainlyRight(SETTINGS_SCHEMA, tree)) return tree as Tree
  const mistake = check(tree)
  if (mistake === undefined) return tree as Tree
  const where = mistake.at === '' ? '' : ` ${mistake.at.slice(1).replaceAll('/', '.')}`
  throw new SettingsError(`${source}:${where} ${mistake.detail}`)
}

/** Checks that need several settings. */
function checkTogether({ socket, tcp, store, etcd, limits }: Settings): void {
  const wrong = (detail: string): never => {
    throw new SettingsError(detail)
  }
  if (tcp.listen !== '' && parseListen(tcp.listen) === undefined) wrong('tcp.listen: must be ADDRESS:PORT')
  if ((tcp.certificate === '') !== (tcp.key === '')) wrong('tcp.certificate and tcp.key belong together')
  if (socket.path === '') wrong('socket.path: must not be empty')
  if (store.kind === 'embedded' && store.path === '') wrong('store.path: must not be empty')
  if (store.kind === 'etcd' && etcd.endpoints.length === 0)
    wrong('etcd.endpoints: there must be one at least')
  if (!etcd.endpoints.every(endpoint => URL.canParse(`${endpoint}`)))
    wrong('etcd.endpoints: each must be a URL')
  if ((etcd.certificate === '') !== (etcd.key === '')) wrong('etcd.certificate and etcd.key belong together')
  if ((etcd.user === '') !== (etcd.passwordFile === ''))
    wrong('etcd.user and etcd.passwordFile belong together')
  if (limits.leaseTtlMinMs > limits.leaseTtlMaxMs) wrong('limits.leaseTtlMinMs is above limits.leaseTtlMaxMs')
  // The end of a lease changes each of its names: that must not push every watcher behind.
  if (limits.namesPerLease > store.history / 2) wrong('limits.namesPerLease is above half of store.history')
}

/** Parses `10.0.0.7:80` or `[::1]:80`. */
export function parseListen(text: string): { address: string; port: number } | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-fA-F:.%a-z]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? []
  const address = bracketed ?? plain
  const port = Number(digits)
  return address === undefined || port > 65535 ? undefined : { address, port }
}

function treeOf(leaf: Leaf, text: string): Tree {
  return treeFor(leaf, leaf.type === 'string' ? text : leaf.type === 'array' ? items(text) : number(text))
}

/** Converts items to numbers where possible; the schema decides whether numbers are allowed. */
function items(text: string): (string | number)[] {
  return text === '' ? [] : text.split(',').map(item => number(item.trim()))
}

function number(text: string): string | number {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text
}

function treeFor({ path }: Leaf, value: unknown): Tree {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Tree
}

function merge(into: Tree, from: Tree): void {
  for (const [key, value] of Object.entries(from)) {
    const below = into[key]
    if (isTree(value) && isTree(below)) merge(below, value)
    else into[key] = value
  }
}

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
