/** Why a relinked program may be no faster than a plain one, for each suite and each app. */
import type { Result } from '../result.ts'

const RELINKED = 'net-relinked'

const ONE_SIDE =
  'Only one side is relinked: the bytes use plain TCP, below our wrappers around some methods of Node.'
const FRAMEWORK = "Most of the time is the program's own work, its parser and its framework."
const FIRST_SECOND =
  'The first second of new programs is measured, in which V8 has not compiled our code yet.'
const SCARCE_CORES =
  'With more busy processes than cores none may poll for long: a message wakes its receiver by a system call, as over TCP.'

const OF_SUITES: Readonly<Record<string, string>> = {
  pingpong:
    'With a core each both sides poll. Where they share a core, a round trip is two context switches, as over TCP.',
  stream: 'Where both sides share a core, the writer fills the ring and waits for the reader, as over TCP.',
  connect: 'Node makes and destroys a `net.Socket` on each side, whatever carries the bytes.',
  fanin: SCARCE_CORES,
  threads: SCARCE_CORES,
  many: "Node's own cost for each of many sockets is the same on both wires.",
  idle: 'A relinked process has a timer besides its doorbell, and keeps its page for `fastsockets status`.',
  oversubscribed: SCARCE_CORES,
  'plain-peers': ONE_SIDE,
  warmup: "V8 has not compiled our JavaScript yet, while the kernel's TCP is always warm.",
  short:
    "Loading Fast Sockets costs time, and V8 has not compiled it yet, while the kernel's TCP is always warm.",
  cpu: 'A process that waits for the other side polls before it sleeps, and that is CPU time.',
  memory:
    "A peer has rings of 1 MiB each way, and a connection has objects of ours beside Node's. The kernel's memory for TCP is in " +
    'neither figure.',
}

const OF_APPS: Readonly<Record<string, string>> = {
  ftp: `A transfer waits for files, and the threads of the file system need the cores on which both sides poll. ${FIRST_SECOND}`,
  http: FRAMEWORK,
  http2:
    "Node's native code gives us each frame in a buffer of its own, which is copied once more; for TCP the kernel gathers them. In bulk " +
    `each side also sleeps at the ends of windows. ${FIRST_SECOND}`,
  tls:
    "Node's native code gives us each record in a buffer of its own, which is copied once more. Most of the time is the cipher's. " +
    FIRST_SECOND,
  express: FRAMEWORK,
  ws: FRAMEWORK,
  'socket.io': FRAMEWORK,
  grpc: `${FRAMEWORK} ${FIRST_SECOND}`,
  matrix: 'It is over after a tenth of a second of new processes, in which our code is cold.',
}

/** The result that is explained, and the reason; undefined without a known reason. */
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
