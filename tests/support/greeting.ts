/** The first greeting for a listener, which nothing proves yet. */
import net from 'node:net'
import { callHashedPort, type Greeted, Race } from '../../fastsockets/bootstrap/bootstrap-client.ts'
import { encodeEarly } from '../../fastsockets/bootstrap/bootstrap-layout.ts'
import { hashedPorts } from '../../fastsockets/bootstrap/hashed-port.ts'
import type { Family } from '../../fastsockets/host/unix-paths.ts'
import type { FallbackReason } from '../../fastsockets/reasons.ts'

export async function greetingOf(
  address: string,
  port: number,
  family: Family,
  limitMs?: number,
): Promise<Greeted | FallbackReason> {
  const race = new Race()
  const { connect } = net.Socket.prototype
  const follow = async (greeted: Greeted): Promise<Greeted> => {
    if (!race.win(greeted.connection)) greeted.connection.destroy()
    return greeted
  }
  return await callHashedPort({ address, port, family }, connect, race, follow, limitMs)
}

/** A candidate that belongs to another socket may be silent. */
const SILENT_MS = 5000

/** The hashed port of a listener whose program is in its first phase: clients may have had the first candidates as their own ports. */
export async function earlyPortOf(port: number): Promise<number> {
  for (const hashed of hashedPorts(port)) {
    const caller = net.connect(hashed, '127.0.0.1').setTimeout(SILENT_MS, () => caller.destroy())
    const isFound = await new Promise<boolean>(resolve => {
      caller.on('error', () => {})
      caller.once('data', bytes => resolve(bytes.equals(encodeEarly(port))))
      caller.once('close', () => resolve(false))
    })
    caller.destroy()
    if (isFound) return hashed
  }
  throw new Error(`the listener at port ${port} has no hashed port`)
}
