/**
 * Where a client looks for the bootstrap of a listener: at the hashed ports, or at the port that the name service
 * names.
 */
import { isDaemonExpected } from '../../nameservice/socket-path.ts'
import {
  type ConnectFunction,
  callBootstrap,
  callHashedPort,
  type Greeted,
  greetingTimeoutMs,
} from '../bootstrap/bootstrap-client.ts'
import { askingOf, rememberSilent } from '../bootstrap/remote-hosts.ts'
import { TimeLimit } from '../bootstrap/time-limit.ts'
import { reachableOwnAddress } from '../host/addresses.ts'
import { tellStep } from '../host/steps.ts'
import { type Family, UNIX } from '../host/unix-paths.ts'
import { findBootstrapPort, inTime, LOOK_UP_MS_MAX, lookUpMs } from './names.ts'

/** Calls the hashed ports, and at the same time the port that the name service names; takes the first greeting. */
export async function findGreeting(
  address: string,
  port: number,
  family: Family,
  connect: ConnectFunction,
  limit: TimeLimit,
): Promise<Greeted> {
  tellStep('client calling')
  if (isElsewhere(address, family)) return await findRemote(address, port, family, connect, limit)
  const hashed = callHashedPort(address, port, family, connect)
  if (family === UNIX || !isDaemonExpected()) return await hashed
  const named = findNamed(address, port, family, connect)
  const isGreeted = (outcome: Greeted | undefined): boolean =>
    outcome !== undefined && 'connection' in outcome
  let outcome = await Promise.race([hashed, named.then(one => (isGreeted(one) ? (one as Greeted) : hashed))])
  if (!isGreeted(outcome)) outcome = (await inTime(named, lookUpMs())) ?? outcome
  for (const other of [hashed, named]) {
    void other.then(one => {
      if (one !== outcome && one !== undefined && 'connection' in one) one.connection.destroy()
    })
  }
  return outcome
}

async function findNamed(
  address: string,
  port: number,
  family: Family,
  connect: ConnectFunction,
  limit?: TimeLimit,
): Promise<Greeted | undefined> {
  const question = findBootstrapPort(address, port)
  // Wait no longer for a slow daemon: the answer is cached for the next connect.
  const found =
    limit === undefined
      ? await question
      : await inTime(question, Math.min(limit.leftMs, greetingTimeoutMs(LOOK_UP_MS_MAX)))
  if (found === undefined || limit?.isOver) return undefined
  return await callBootstrap(address, found, port, family, connect, limit?.leftMs)
}

/**
 * On another host: calls the port that the name service names, then the hashed ports if the policy or the subnet
 * allows. A silent host is remembered.
 */
async function findRemote(
  address: string,
  port: number,
  family: Family,
  connect: ConnectFunction,
  limit: TimeLimit,
): Promise<Greeted> {
  const asking = askingOf(address, port)
  if (typeof asking === 'object') return { code: asking.code }
  // The named port may use half of the time: the hashed ports need the rest.
  const namedLimit = asking === 'named' ? limit : new TimeLimit(limit.leftMs / 2)
  const named = isDaemonExpected() ? await findNamed(address, port, family, connect, namedLimit) : undefined
  if (named !== undefined && 'connection' in named) return named
  const outcome =
    asking === 'hashed'
      ? await callHashedPort(address, port, family, connect, limit.leftMs)
      : (named ?? { code: 'REMOTE_HOST', detail: 'the name service does not know it' })
  if ('code' in outcome && outcome.code === 'SILENT') rememberSilent(address)
  return outcome
}

/** Whether `address` belongs to another host. */
export function isElsewhere(address: string, family: Family): boolean {
  return family !== UNIX && reachableOwnAddress(address) === undefined
}
