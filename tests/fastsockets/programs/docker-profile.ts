/**
 * Runs a program that may make the system calls of Docker's default profile, and no others. x86-64 only. The filter is there
 * before the program starts, as a container runtime has it: libuv ends a program that loses io_uring later.
 *
 *   PARENT_CHANNEL=<descriptor> node docker-profile.js PROGRAM ARGUMENTS...
 */
import { constants } from 'node:os'
import * as rules from '../../support/docker-profile-rules.ts'
import {
  ARCHITECTURE,
  allow,
  and,
  applyFilter,
  argument,
  become,
  errnoOf,
  load,
  NUMBER,
  refuse,
  unless,
} from '../../support/seccomp.ts'

const { EPERM, ENOSYS } = constants.errno

/** The value that was loaded is one of these: `then` is run. */
const cases = (values: readonly number[], then: () => Buffer): Buffer[] =>
  values.flatMap(value => [unless(value, 1), then()])

/** Rules for the arguments of one call, which end it. */
const call = (number: number, ...rules: readonly Buffer[]): Buffer[] => [
  unless(number, rules.length),
  ...rules,
]

applyFilter([
  load(ARCHITECTURE),
  unless(rules.ARCHITECTURE, 1),
  load(NUMBER),
  ...cases([...rules.ALLOWED.values()], allow),
  ...call(rules.CLONE3, refuse(ENOSYS)),
  ...call(
    rules.CLONE,
    load(argument(0)),
    and(rules.CLONE_FLAGS_REFUSED),
    unless(0, 1),
    allow(),
    refuse(EPERM),
  ),
  ...call(
    rules.SOCKET,
    load(argument(0)),
    ...cases(rules.SOCKET_FAMILIES_REFUSED, () => refuse(EPERM)),
    allow(),
  ),
  ...call(rules.PERSONALITY, load(argument(0)), ...cases(rules.PERSONALITIES_ALLOWED, allow), refuse(EPERM)),
  refuse(EPERM),
])

if (errnoOf(rules.PROCESS_MADVISE) !== EPERM)
  throw new Error('the filter does not refuse what it is to refuse')

const { PARENT_CHANNEL: channel = '' } = process.env
process.env.NODE_CHANNEL_FD = channel
const [path = '', ...args] = process.argv.slice(2)
become(path, args, Number(channel))
