import type { ProcessStatus } from '../../status/decode-status.ts'

/** Which processes, listeners and connections are shown; what is missing restricts nothing. */
export interface StatusFilter {
  readonly pid?: number
  /** A part of the program's path. */
  readonly program?: string
  /** Of either end. */
  readonly port?: number
  readonly wire?: string
}

/** A process of which `port` or `wire` leave nothing is left out. */
export function filterStatus(
  processes: readonly ProcessStatus[],
  { pid, program, port, wire }: StatusFilter,
): ProcessStatus[] {
  const isOfPort = (place: string): boolean => port === undefined || place.endsWith(`:${port}`)
  return processes
    .filter(status => pid === undefined || status.pid === pid)
    .filter(status => program === undefined || status.program.includes(program))
    .map(status => ({
      ...status,
      listeners: wire === undefined ? status.listeners.filter(({ local }) => isOfPort(local)) : [],
      sockets: status.sockets.filter(
        ({ transport, local, remote }) =>
          (wire === undefined || transport === wire) && (isOfPort(local) || isOfPort(remote)),
      ),
    }))
    .filter(
      ({ listeners, sockets }) =>
        (port === undefined && wire === undefined) || listeners.length + sockets.length > 0,
    )
}
