import net, { type Socket } from 'node:net'

/** What `fastsockets/register` leaves on the module. */
const INSTALLED = Symbol.for('fastsockets.installed')

/** A check that a socket of a relinked program is on the wire that was meant. Plain programs do not load any of this. */
export async function assertWire(wire: string): Promise<(socket: Socket) => void> {
  const { transportOf } = await import('../../fastsockets/handle/transport.ts')
  return socket => {
    const { transport, reason } = transportOf(socket)
    if (transport !== wire)
      throw new Error(`on ${transport} where ${wire} was meant: ${JSON.stringify(reason)}`)
  }
}

/** Whether anything has relinked this thread: a preload may come by ways that nobody thought of. */
export function isRelinked(): boolean {
  return (net as unknown as Record<symbol, unknown>)[INSTALLED] === true
}
