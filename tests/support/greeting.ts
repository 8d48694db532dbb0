/** The first greeting for a listener, which nothing proves yet. */
import net from 'node:net'
import { callHashedPort, type Greeted, Race } from '../../fastsockets/bootstrap/bootstrap-client.ts'
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
