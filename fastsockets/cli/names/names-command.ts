/** `fastsockets names`: reads and changes entries of the name service. */
import { Command, InvalidArgumentError } from 'commander'
import {
  ADDRESS_VARIABLE,
  AUTHORITIES_SIZE_MAX,
  CA_FILE_VARIABLE,
  kindOf,
  NameClient,
  type NameClientOptions,
  type NameError,
  type NewRecord,
  TOKEN_FILE_VARIABLE,
  TOKEN_SIZE_MAX,
} from '../../../nameservice/index.ts'
import { shownJson, shownText } from '../../../nic/shown-text.ts'
import { readTrustedFile, UntrustedFileError } from '../../../nic/trusted-file.ts'
import { FAILURE, OK, USAGE_ERROR } from '../exit-codes.ts'
import { followNames, holdName } from './names-streams.ts'
import { printEntries, printEntry, printLeases, printRegistered } from './names-tables.ts'

const NOTES = `
The daemon is found at $XDG_RUNTIME_DIR/fastsockets/named.sock or /run/fastsockets/named.sock, unless --address or
${ADDRESS_VARIABLE} says otherwise. Over TCP, ${TOKEN_FILE_VARIABLE} and ${CA_FILE_VARIABLE} name the files that
--token-file and --ca-file name.

Examples:
  $ fastsockets names ls services/
  $ fastsockets names get inet:tcp:10.0.0.7:8080 --json
  $ fastsockets names watch services/
  $ fastsockets names register services/printer --endpoint e1 --label room=12     until Ctrl-C
  $ fastsockets names rm services/printer
  $ fastsockets names page                    what to open in a browser; the daemon needs --tcp-listen 127.0.0.1:PORT
  $ fastsockets names --address https://names.example:7443 --token-file token ls

Exit codes: 0 it is done, 1 it is not, for example because there is no such name, 2 this is not how it is used.`

const DAEMON_HINT = `(fastsockets named starts the daemon; --address or ${ADDRESS_VARIABLE} says where one is)`

interface CommonOptions {
  readonly address?: string
  /** The contents of the file, not its path; likewise below. */
  readonly tokenFile?: string
  readonly caFile?: string
  readonly json?: boolean
}

interface RegisterFlags {
  readonly endpoint: string
  readonly host?: string
  readonly port?: number
  readonly tag?: string
  readonly uid?: number
  readonly protocolVersion?: number
  readonly driver?: readonly { name: string; address: string }[]
  readonly label?: Readonly<Record<string, string>>
  readonly ttl: number
  readonly takeover?: boolean
  readonly ownerKeyFile?: string
  readonly once?: boolean
}

export function namesCommand(): Command {
  const names = new Command('names')
    .description('list, look up, watch, register and remove names of the name service')
    .option('--address <where>', 'unix:PATH, http://HOST:PORT or https://HOST:PORT')
    .option('--token-file <file>', 'file with the bearer token, for TCP', secret)
    .option('--ca-file <file>', 'file with the certificates to trust, PEM', content)
    .option('--json', 'print JSON; "watch" prints one value a line')
    .addHelpText('after', NOTES)
  const add = (command: Command): Command => {
    names.addCommand(command)
    return command.option('--json', 'print JSON')
  }
  add(new Command('ls').argument('[prefix]', 'what names begin with', ''))
    .description('list names')
    .option('--cursor', 'also print from where "watch --after" goes on; with --json, on standard error')
    .action(async (prefix: string, { cursor }: { cursor?: boolean }, command: Command) => {
      await withClient(command, async (client, isJson) => {
        const listing = await client.list(prefix)
        printEntries(listing.entries, isJson)
        if (cursor) (isJson ? process.stderr : process.stdout).write(`${listing.cursor}\n`)
      })
    })
  add(new Command('get').argument('<name>', 'what to look up', name))
    .description('look up one name')
    .action(async (name: string, _options, command: Command) => {
      await withClient(command, async (client, isJson) => {
        const { entry } = await client.api.lookUp(name)
        if (entry === undefined) throw new Error(`${name} is not registered`)
        printEntry(entry, isJson)
      })
    })
  add(new Command('watch').argument('[prefix]', 'what names begin with', ''))
    .description('print every change, until interrupted')
    .option('--after <cursor>', 'begin after this point in the history; "ls --cursor" prints it')
    .action(async (prefix: string, { after }: { after?: string }, command: Command) => {
      await withClient(command, (client, isJson) => followNames(client, prefix, after, isJson))
    })
  add(registerCommand())
  add(new Command('rm').argument('<names...>', 'what to remove', addName))
    .description('remove names')
    .action(async (wanted: string[], _options, command: Command) => {
      await withClient(command, async (client, isJson) => {
        for (const name of wanted) {
          const revision = await client.api.deregister(name)
          process.stdout.write(isJson ? `${shownJson({ name, revision })}\n` : `${name} is removed\n`)
        }
      })
    })
  add(new Command('leases').description('list leases: your own, or all if you are root')).action(
    async (_options, command: Command) => {
      await withClient(command, async (client, isJson) => printLeases(await client.api.leases(), isJson))
    },
  )
  add(new Command('page').description('print the address of the page of names, leases and watchers')).action(
    async (_options, command: Command) => {
      await withClient(command, async (client, isJson) => {
        const address = await client.api.pageAddress()
        process.stdout.write(isJson ? `${shownJson({ address })}\n` : `${shownText(address)}\n`)
      })
    },
  )
  return names
}

function registerCommand(): Command {
  return new Command('register')
    .argument('<name>', 'what to register', name)
    .description('register a name, and keep it registered until interrupted')
    .requiredOption('--endpoint <name>', "the endpoint's own name")
    .option('--host <identity>', 'identity of its host')
    .option('--driver <name=address>', 'a driver and its address blob, base64; may be repeated', addDriver)
    .option('--label <key=value>', 'may be repeated', addLabel)
    .option('--port <number>', 'inet names: the port on which the bootstrap listens', number)
    .option('--tag <hex>', '16 hexadecimal digits')
    .option('--uid <number>', 'user id of the endpoint; your own by default', number)
    .option('--protocol-version <number>', 'version of the protocol', number)
    .option('--ttl <ms>', 'how long the name outlives this command if it dies', number, 10_000)
    .option(
      '--takeover',
      'take the name over: at once with the same owner key, else when the lease of its holder ends',
    )
    .option('--owner-key-file <file>', 'file with the owner key', secret)
    .option('--once', 'register, print and leave: the name goes when the TTL is over')
    .action(async (name: string, flags: RegisterFlags, command: Command) => {
      const { ttl, takeover, ownerKeyFile, once } = flags
      const options = {
        ...(takeover === undefined ? {} : { takeover }),
        ...(ownerKeyFile === undefined ? {} : { ownerKey: ownerKeyFile.trim() }),
      }
      await withClient(
        command,
        async (client, isJson) => {
          const record = recordOf(flags, command.optsWithGlobals<CommonOptions>().address)
          if (!once) return await holdName(client, { name, ...record }, options, isJson)
          const lease = await client.api.grant(ttl)
          const { entry } = await client.api.register(name, lease.id, record, options)
          printRegistered(entry, isJson)
        },
        ttl,
      )
    })
}

function recordOf(flags: RegisterFlags, address = process.env[ADDRESS_VARIABLE]): NewRecord {
  const { endpoint, host, port, tag, protocolVersion, driver, label } = flags
  // Over a unix socket the kernel tells the daemon.
  const uid = flags.uid ?? (address?.startsWith('http') ? process.geteuid?.() : undefined)
  return {
    endpoint,
    ...(uid === undefined ? {} : { uid }),
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
    ...(tag === undefined ? {} : { tag }),
    ...(protocolVersion === undefined ? {} : { version: protocolVersion }),
    ...(driver === undefined ? {} : { drivers: driver }),
    ...(label === undefined ? {} : { labels: label }),
  }
}

async function withClient(
  command: Command,
  use: (client: NameClient, isJson: boolean) => void | Promise<void>,
  ttlMs?: number,
): Promise<void> {
  const { address, tokenFile, caFile, json } = command.optsWithGlobals<CommonOptions>()
  const options: NameClientOptions = {
    ...(address === undefined ? {} : { address }),
    ...(tokenFile === undefined ? {} : { token: tokenFile.trim() }),
    ...(caFile === undefined ? {} : { ca: caFile }),
    ...(ttlMs === undefined ? {} : { ttlMs }),
  }
  let client: NameClient | undefined
  try {
    client = new NameClient(options)
    await use(client, json === true)
    process.exitCode = OK
  } catch (error) {
    const { code, message } = error as NameError
    process.stderr.write(`fastsockets names: ${shownText(message)}\n`)
    if (code === 'ERR_NAMES_UNAVAILABLE') process.stderr.write(`${DAEMON_HINT}\n`)
    process.exitCode = code === 'ERR_NAMES_ARGUMENT' ? USAGE_ERROR : FAILURE
  } finally {
    await client?.close()
  }
}

function name(text: string): string {
  if (kindOf(text) === undefined) throw new InvalidArgumentError('Neither an endpoint nor an inet name.')
  return text
}

function addName(text: string, before: readonly string[] = []): string[] {
  return [...before, name(text)]
}

/** The contents of a file of certificates. */
function content(path: string): string {
  return readArgument(path, AUTHORITIES_SIZE_MAX, false)
}

/** The contents of a file that only this user and the file's group may read. */
function secret(path: string): string {
  return readArgument(path, TOKEN_SIZE_MAX, true)
}

function readArgument(path: string, sizeMax: number, isSecret: boolean): string {
  try {
    return readTrustedFile(path, { sizeMax, isSecret }).toString()
  } catch (error) {
    if (error instanceof UntrustedFileError) throw new InvalidArgumentError(`${error.message}.`)
    throw new InvalidArgumentError(`It cannot be read: ${(error as NodeJS.ErrnoException).code}.`)
  }
}

function number(text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new InvalidArgumentError('Not a number.')
  return Number(text)
}

function addDriver(text: string, before: readonly object[] = []): object[] {
  const [name, address] = pair(text)
  return [...before, { name, address }]
}

function addLabel(text: string, before: object = {}): object {
  const [key, value] = pair(text)
  return { ...before, [key]: value }
}

function pair(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('It needs a "=".')
  return [text.slice(0, at), text.slice(at + 1)]
}
