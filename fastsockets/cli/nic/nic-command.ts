/** `fastsockets nic open`: gives programs without CAP_NET_RAW the sockets that the driver `ethernet` needs. */
import { rmSync } from 'node:fs'
import { Command, InvalidArgumentError } from 'commander'
import { openSocketHelper } from '../../../nic/index.ts'
import { uidOfName } from '../../host/user-names.ts'

const NOTES = `
Runs until SIGTERM or SIGINT. Programs find it by the variable FASTSOCKETS_NIC. The kernel says which user calls; all
other users get nothing. A program with such a socket receives frames of its own connections only, and may send any
frame: name users that you would trust with CAP_NET_RAW. Both must be in one network namespace.

Examples:
  $ fastsockets nic open --user alice --socket /run/fastsockets-nic            as root
  $ FASTSOCKETS_NIC=/run/fastsockets-nic fastsockets run -- node server.js     as alice; her policy names ethernet

Exit codes: 0 it was ended, 1 the sockets cannot be opened, 2 this is not how the command is used.`

interface OpenOptions {
  readonly socket: string
  readonly user: readonly number[]
}

export function nicCommand(): Command {
  const command = new Command('nic')
    .description('user-level access to network devices')
    .addHelpText('after', NOTES)
  command
    .command('open')
    .description('hand packet sockets to programs that may open none; needs CAP_NET_RAW')
    .requiredOption('--socket <path>', 'the unix socket to listen at')
    .requiredOption('--user <users...>', 'users whose programs get packet sockets, by id or name', parseUser)
    .addHelpText('after', NOTES)
    .action(open)
  return command
}

function parseUser(text: string, others: readonly number[] = []): readonly number[] {
  const uid = /^\d{1,10}$/.test(text) ? Number(text) : uidOfName(text)
  if (uid === undefined) throw new InvalidArgumentError('There is no such user.')
  return [...others, uid]
}

async function open({ socket, user }: OpenOptions): Promise<void> {
  const stop = new Promise<void>(resolve => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
  })
  const helper = await openSocketHelper(socket, user)
  process.stdout.write(`packet sockets for ${user.length} users at ${socket}\n`)
  await stop
  helper.close()
  rmSync(socket, { force: true })
}
