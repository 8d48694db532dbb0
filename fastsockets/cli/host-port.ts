import { InvalidArgumentError } from 'commander'

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** `host:port`, `[address]:port`, or only a port, of this host. */
export function parseHostPort(text: string): HostPort {
  const match = /^(?:\[([^\]]+)\]:|([^:]+):)?(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port < 1 || port > 0xffff) {
    throw new InvalidArgumentError('it must look like localhost:8080 or [::1]:8080')
  }
  return { host: match[1] ?? match[2] ?? 'localhost', port }
}
