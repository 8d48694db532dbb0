/** The offers of this thread that callers may take up, by their ids. */
import type { Socket } from 'node:net'

export interface ExpectedCall {
  readonly secret: Buffer
  /** The call comes to the loopback port; otherwise to an address where this process listens. */
  readonly isLocal: boolean
  /** Receives the socket of the caller, which is authenticated. Called once. */
  accept(socket: Socket): void
}

const calls = new Map<string, ExpectedCall>()

/** Returns what ends the expectation; that is false if it has ended already. */
export function expectCall(id: Buffer, call: ExpectedCall): () => boolean {
  const key = id.toString('hex')
  calls.set(key, call)
  return () => calls.delete(key)
}

export function expectedCall(id: string, isLocal: boolean): ExpectedCall | undefined {
  const call = calls.get(id)
  return call?.isLocal === isLocal ? call : undefined
}
