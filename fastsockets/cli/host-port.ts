import { InvalidArgumentError } from 'commander'

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** `host:port`, `[address]:port`, or only a port, of this host. */
export function parseHostPort(text: string): HostPort {
  return parse(text, 1)
}

/** The same for a server: port 0 lets the system choose one. */
export function parseListening(text: string): HostPort {
  return parse(text, 0)
}

function parse(text: string, portMin: number): HostPort {
  const match = /^(?:\[([^\]]+)\]:|([^:]+):)?(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port < portMin || port > 0xffff) {
    throw new InvalidArgumentError('it must look like localhost:8080 or [::1]:8080')
  }
  return { host: match[1] ?? match[2] ?? 'localhost', port }
}
