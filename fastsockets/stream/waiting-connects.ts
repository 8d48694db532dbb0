import type { Asked } from '../host/unix-paths.ts'
import type { Stream } from './stream.ts'
import type { StreamTable } from './stream-table.ts'

/** A request of a client. */
export interface Connect {
  readonly stream: Stream
  readonly port: number
  /** The address that was dialled. */
  readonly address: string
  readonly family: Asked
}

/** CONNECTs without credit or room in the ring, in the order of the requests. */
export class WaitingConnects {
  private readonly waiting: Connect[] = []

  get size(): number {
    return this.waiting.length
  }

  add(connect: Connect): void {
    this.waiting.push(connect)
  }

  /** Retries up to the first that `ask` refuses; false if there is one. */
  resume(streams: StreamTable, ask: (connect: Connect) => boolean): boolean {
    const refused = this.waiting.findIndex(connect => isStillWanted(connect, streams) && !ask(connect))
    this.waiting.splice(0, refused === -1 ? this.waiting.length : refused)
    return refused === -1
  }

  clear(): void {
    this.waiting.length = 0
  }
}

/**
 * False if the program has closed the socket meanwhile: it then ends here, without an event. But if the program was
 * notified of the connection, the server sees it come and go.
 */
function isStillWanted({ stream }: Connect, streams: StreamTable): boolean {
  if (stream.state === 'closing' && !stream.isPresumed) stream.handleRefused(undefined)
  return streams.get(stream.id) === stream && !stream.isAnswered
}
