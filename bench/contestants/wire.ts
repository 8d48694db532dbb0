import net, { type Socket } from 'node:net'

/** What `fastsockets/register` leaves on the module. */
const INSTALLED = Symbol.for('fastsockets.installed')

/**
 * Checks that a socket of a relinked program uses the intended wire. Plain programs do not call it, and so load
 * nothing of the package.
 */
export async function assertWire(wire: string): Promise<(socket: Socket) => void> {
  const { transportOf } = await import('../../fastsockets/handle/transport.ts')
  return socket => {
    const { transport, reason } = transportOf(socket)
    if (transport !== wire)
      throw new Error(`on ${transport} where ${wire} was meant: ${JSON.stringify(reason)}`)
  }
}

/** True if this thread is relinked, by whichever kind of preload. */
export function isRelinked(): boolean {
  return INSTALLED in net
}
