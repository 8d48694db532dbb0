import type { ProcessStatus, SocketStatus } from '../../status/decode-status.ts'
import { KERNEL_KINDS } from '../../status/status-layout.ts'

export interface RatedSocket extends SocketStatus {
  /** Bytes per second between the last two reports; undefined for TCP. */
  readonly inRate?: number
  readonly outRate?: number
}

export interface RatedProcess extends ProcessStatus {
  readonly sockets: readonly RatedSocket[]
  readonly inRate: number
  readonly outRate: number
}

/** The threads seen now, with the rates since `before`, `elapsedMs` ago. */
export function withRates(
  now: readonly ProcessStatus[],
  before: readonly ProcessStatus[],
  elapsedMs: number,
): RatedProcess[] {
  const perSecond = (bytes: number): number => Math.max(0, Math.round((bytes * 1000) / elapsedMs))
  const old = new Map(before.map(status => [threadKey(status), status]))
  return now.map(status => {
    const past = old.get(threadKey(status))
    const pastSockets = new Map(past?.sockets.map(socket => [socketKey(socket), socket]))
    const sockets = status.sockets.map((socket): RatedSocket => {
      const { bytesIn, bytesOut, kind } = socket
      // Bytes over TCP are counted once a second: too coarse for a rate. Those of UDP are not counted.
      if (KERNEL_KINDS.has(kind)) return socket
      const pastSocket = pastSockets.get(socketKey(socket))
      return {
        ...socket,
        inRate: perSecond(bytesIn - (pastSocket?.bytesIn ?? 0)),
        outRate: perSecond(bytesOut - (pastSocket?.bytesOut ?? 0)),
      }
    })
    return {
      ...status,
      sockets,
      inRate: past === undefined ? 0 : perSecond(status.bytesIn - past.bytesIn),
      outRate: past === undefined ? 0 : perSecond(status.bytesOut - past.bytesOut),
    }
  })
}

function threadKey({ pid, thread, startMs }: ProcessStatus): string {
  return `${pid} ${thread} ${startMs}`
}

function socketKey({ row, startMs }: SocketStatus): string {
  return `${row} ${startMs}`
}
