import type { Socket } from 'node:net'

/** A check that a socket of a relinked program is on the wire that was meant. Plain programs do not load any of this. */
export async function assertWire(wire: string): Promise<(socket: Socket) => void> {
  const { transportOf } = await import('../../fastsockets/handle/transport.ts')
  return socket => {
    const { transport, reason } = transportOf(socket)
    if (transport !== wire)
      throw new Error(`on ${transport} where ${wire} was meant: ${JSON.stringify(reason)}`)
  }
}
