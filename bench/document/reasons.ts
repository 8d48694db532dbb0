/** Why a relinked program may be no faster than a plain one, for each suite and each app. */
import type { Result } from '../result.ts'

const RELINKED = 'net-relinked'

const ONE_SIDE =
  'Only one side is relinked: the bytes go by plain TCP, with our wrappers around some of the methods of Node.'
const FRAMEWORK =
  'Most of the time is the own work of the program, its parser and its framework, which no wire saves.'

const OF_SUITES: Readonly<Record<string, string>> = {
  pingpong:
    'On a core of their own both sides poll; where they share one, a round trip is two switches between them, as with TCP.',
  stream:
    'Where both sides share a core, the writer fills the ring and waits until the reader has had its turn, as with TCP.',
  connect:
    "Most of a connection is Node's own, which makes, tells and takes down a `net.Socket` on each side, whatever carries the bytes.",
  fanin:
    'With more busy processes than cores nobody may poll for long: messages wake their receiver by a doorbell, a system call as those of TCP.',
  threads:
    'With more busy threads than cores nobody may poll for long: messages wake their receiver by a doorbell, a system call as those of TCP.',
  many: 'What each of many sockets costs Node itself is the same on both wires.',
  idle: 'A relinked process looks for news by a timer besides its doorbell, and keeps its page for `fastsockets status`, also when nothing happens.',
  oversubscribed:
    'With more busy processes than cores polling has to give way: messages wake their receiver by a doorbell, a system call as those of TCP.',
  'plain-peers': ONE_SIDE,
  warmup: 'V8 has not compiled yet what we do in JavaScript; what the kernel does for TCP is always warm.',
  cpu: 'Who waits for the other side polls for a while before it sleeps, and that is CPU time.',
  memory:
    'A peer has rings of 1 MiB each way, of which what was used is resident, and a connection has objects of ours beside those of Node. What ' +
    'the kernel keeps for TCP is in neither figure.',
}

const OF_APPS: Readonly<Record<string, string>> = {
  ftp: 'A transfer waits for files, and the threads of the file system want the cores on which both sides poll.',
  http: FRAMEWORK,
  http2:
    'Native code of Node gives us each frame in a buffer of its own, which is copied once more; for TCP the kernel gathers them. In bulk each ' +
    'side also sleeps at the ends of windows.',
  tls: "Native code of Node gives us each record in a buffer of its own, which is copied once more; most of the time is the cipher's, which no wire saves.",
  express: FRAMEWORK,
  ws: FRAMEWORK,
  'socket.io': FRAMEWORK,
  grpc: FRAMEWORK,
  matrix: 'It is over after a tenth of a second of new processes, in which our code is cold.',
}

/** What it is a reason for, and the reason; undefined where none is known. */
export function reasonFor({
  suite,
  contestant,
  parameters,
}: Pick<Result, 'suite' | 'contestant' | 'parameters'>): readonly [what: string, why: string] | undefined {
  if (contestant !== RELINKED) return [contestant, ONE_SIDE]
  const app = suite === 'apps' ? String(parameters.app) : undefined
  const reasons = app === undefined ? OF_SUITES : OF_APPS
  const name = app ?? suite
  const why = Object.hasOwn(reasons, name) ? reasons[name] : undefined
  return why === undefined ? undefined : [name, why]
}
