/** Where the daemon is, and how it is reached. */
import {
  Agent,
  type AgentOptions,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  request,
} from 'node:http'
import { Agent as TlsAgent, type AgentOptions as TlsAgentOptions, request as tlsRequest } from 'node:https'
import { type NetConnectOpts, Socket } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'
import { readTrustedFile, UntrustedFileError } from '../../nic/trusted-file.ts'
import { ADDRESS_VARIABLE, findSocketPath } from '../socket-path.ts'
import { NameError } from './errors.ts'
import { type OwnTime, ownTime } from './own-time.ts'
import { Pipeline } from './pipeline.ts'

const TOKEN = /^[\x21-\x7e]+$/
/** Bytes of a file with a token, and of one with certificates. */
export const TOKEN_SIZE_MAX = 4096
export const AUTHORITIES_SIZE_MAX = 1024 * 1024

/** Requests of one client at the same time over TCP; others wait. */
const SOCKETS_MAX = 32
export const TOKEN_FILE_VARIABLE = 'FASTSOCKETS_NAMES_TOKEN_FILE'
export const CA_FILE_VARIABLE = 'FASTSOCKETS_NAMES_CA_FILE'

export interface TargetOptions {
  /** `unix:PATH`, `http://HOST:PORT` or `https://HOST:PORT`. */
  readonly address?: string
  /** A bearer token, for TCP. */
  readonly token?: string
  /** Certificates to trust instead of the usual ones, PEM. */
  readonly ca?: string
  /** Makes the sockets to the daemon, not yet connected. For callers that wrap `node:net` and mark their own sockets. */
  readonly openSocket?: () => Socket
}

interface Pipelines {
  readonly path: string
  readonly changes: Pipeline
  readonly others: Pipeline
}

export class Target {
  readonly time: OwnTime
  readonly #socketPath: string | undefined
  readonly #url: URL | undefined
  /** The header of that name, if there is a token. */
  readonly authorization: string | undefined
  readonly #agent: Agent
  readonly #openSocket: () => Socket
  readonly #tls: TlsAgentOptions
  #pipelines: Pipelines | undefined

  /** Missing options come from the environment. Throws `ERR_NAMES_ARGUMENT`. */
  constructor(
    { address, token, ca, openSocket }: TargetOptions,
    env: NodeJS.ProcessEnv = process.env,
    time = ownTime,
  ) {
    this.time = time
    const where = address ?? (env[ADDRESS_VARIABLE] || undefined)
    if (where?.startsWith('unix:')) this.#socketPath = where.slice('unix:'.length)
    else if (where !== undefined) this.#url = parseUrl(where)
    this.authorization = authorizationOf(
      token ?? readVariable(env, TOKEN_FILE_VARIABLE, TOKEN_SIZE_MAX, true)?.trim(),
    )
    this.#openSocket = openSocket ?? (() => new Socket())
    const authority = ca ?? readVariable(env, CA_FILE_VARIABLE, AUTHORITIES_SIZE_MAX, false)
    this.#tls = authority === undefined ? {} : { ca: authority }
    this.#agent = this.#newAgent({ keepAlive: true, maxSockets: SOCKETS_MAX })
  }

  /** A single request. `isOwn`: on a connection of its own, for a stream that may last. */
  request(
    method: string,
    path: string,
    headers: Readonly<Record<string, string | number>>,
    isOwn: boolean,
    listener: (response: IncomingMessage) => void,
  ): ClientRequest {
    const url = this.#url
    const options: RequestOptions = {
      method,
      path,
      headers: {
        host: url?.host ?? 'localhost',
        ...(this.authorization === undefined ? {} : { authorization: this.authorization }),
        ...headers,
      },
      agent: isOwn ? this.#newAgent({ keepAlive: false }) : this.#agent,
    }
    // Evaluated each time: the user's own daemon may have started since.
    if (url === undefined)
      return request({ ...options, socketPath: this.#socketPath ?? findSocketPath() }, listener)
    const { hostname, port } = url
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    const ask = url.protocol === 'https:' ? tlsRequest : request
    return ask({ ...options, host, port }, listener)
  }

  /**
   * For questions over a unix socket; undefined over TCP. Changes, which wait for the store, have a pipeline of their
   * own.
   */
  pipeline(isChange: boolean): Pipeline | undefined {
    if (this.#url !== undefined) return undefined
    const path = this.#socketPath ?? findSocketPath()
    if (this.#pipelines?.path !== path) {
      this.#pipelines?.changes.retire()
      this.#pipelines?.others.retire()
      const open = () => this.#openSocket().connect({ path })
      const { clock } = this.time
      this.#pipelines = { path, changes: new Pipeline(open, clock), others: new Pipeline(open, clock) }
    }
    return isChange ? this.#pipelines.changes : this.#pipelines.others
  }

  close(): void {
    this.#agent.destroy()
    this.#pipelines?.changes.close()
    this.#pipelines?.others.close()
  }

  #newAgent(options: AgentOptions): Agent {
    if (this.#url?.protocol === 'https:')
      return new OwnTlsAgent(this.#openSocket, { ...this.#tls, ...options })
    return new OwnAgent(this.#openSocket, options)
  }
}

class OwnAgent extends Agent {
  readonly #openSocket: () => Socket

  constructor(openSocket: () => Socket, options: AgentOptions) {
    super(options)
    this.#openSocket = openSocket
  }

  createConnection(where: NetConnectOpts): Socket {
    return this.#openSocket().connect(where)
  }
}

class OwnTlsAgent extends TlsAgent {
  readonly #openSocket: () => Socket

  constructor(openSocket: () => Socket, options: TlsAgentOptions) {
    super(options)
    this.#openSocket = openSocket
  }

  createConnection(where: NetConnectOpts & ConnectionOptions): Socket {
    return connect({ ...where, socket: this.#openSocket().connect(where) })
  }
}

function parseUrl(where: string): URL {
  const url = URL.canParse(where) ? new URL(where) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url
  throw new NameError(
    'ERR_NAMES_ARGUMENT',
    'the address must be unix:PATH, http://HOST:PORT or https://HOST:PORT',
  )
}

function authorizationOf(token: string | undefined): string | undefined {
  if (token === undefined) return undefined
  if (TOKEN.test(token)) return `Bearer ${token}`
  throw new NameError('ERR_NAMES_ARGUMENT', 'a token has visible characters of ASCII only, and at least one')
}

function readVariable(
  env: NodeJS.ProcessEnv,
  variable: string,
  sizeMax: number,
  isSecret: boolean,
): string | undefined {
  const path = env[variable]
  if (!path) return undefined
  try {
    return readTrustedFile(path, { sizeMax, isSecret }).toString()
  } catch (cause) {
    const why = cause instanceof UntrustedFileError ? cause.problem : 'cannot be read'
    throw new NameError('ERR_NAMES_ARGUMENT', `the file that ${variable} names ${why}`, { cause })
  }
}
