import { InvalidArgumentError } from 'commander'

export interface HostPort {
  readonly host: string
  readonly port: number
}

const EXAMPLES = 'localhost:8080 or [::1]:8080'

/** `host:port`, `[address]:port`, or only a port, of this host. */
export function parseHostPort(text: string): HostPort {
  return parse(text, 1, EXAMPLES)
}

/** The same where unix sockets are understood, too. */
export function parseUnlessUnix(text: string): HostPort {
  return parse(text, 1, 'localhost:8080, [::1]:8080 or unix:/run/app.sock')
}

/** The same for a server: port 0 lets the system choose one. */
export function parseListening(text: string): HostPort {
  return parse(text, 0, EXAMPLES)
}

function parse(text: string, portMin: number, examples: string): HostPort {
  const match = /^(?:\[([^\]]+)\]:|([^:]+):)?(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port < portMin || port > 0xffff) {
    throw new InvalidArgumentError(`it must look like ${examples}`)
  }
  return { host: match[1] ?? match[2] ?? 'localhost', port }
}
