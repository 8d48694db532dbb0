/** The sockets that the daemon listens on, and the identity of the peer of each connection. */
import { once } from 'node:events'
import { chmod } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createSecureContext } from 'node:tls'
import { readTrustedFile } from '../../nic/trusted-file.ts'
import { Refusal } from '../problem.ts'
import { Connections } from './connections.ts'
import type { DaemonPage } from './daemon-page.ts'
import type { Authenticate, HttpHandler } from './http-handler.ts'
import { ANONYMOUS, type Principal, unixPrincipal } from './principal.ts'
import { endWithProblem, NO_PROXY, refusalOf, TOO_MANY_CONNECTIONS } from './raw-problem.ts'
import { parseListen, reasonOfFile, SettingsError } from './settings.ts'
import { type Limits, PEM_SIZE_MAX, type Settings } from './settings-schema.ts'
import type { Caller } from './shares.ts'
import { loadPosix } from './system/posix.ts'
import { prepareSocketFile, SocketFileError } from './system/socket-file.ts'
import type { TokenBuckets } from './token-bucket.ts'
import { Tokens } from './tokens.ts'

const HEADERS_MS_MAX = 5000
const CHECK_MS = 500
const TLS_HANDSHAKE_MS = 5000
const BACKLOG = 4096
/** Time for answers under way when the daemon stops. */
const GRACE_MS = 2000
const SWEEP_MS = 20
/** Interval between two reports of callers that could not be accepted. */
const REPORT_MS = 1000
const LOOPBACK = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/
const LOOPBACK_V4 = '127.0.0.1'
/** Addresses of callers from loopback, also IPv4-mapped. */
const FROM_LOOPBACK = /^(::ffff:127\.|127\.|::1$)/

export interface ListenersOptions {
  readonly settings: Settings
  readonly handler: HttpHandler
  readonly buckets: TokenBuckets
  /** Served on a TCP port of loopback without TLS. */
  readonly page: DaemonPage | undefined
  /** Called if accept failed, for example for lack of descriptors. */
  readonly onLost: (error: Error) => void
  /** Called if a caller was refused before it had sent a complete request. */
  readonly onRefused: (refusal: Refusal) => void
}

interface TlsFiles {
  readonly cert: Buffer
  readonly key: Buffer
}

export class Listeners {
  readonly connections: Connections
  readonly #settings: Settings
  readonly #handler: HttpHandler
  readonly #buckets: TokenBuckets
  readonly #page: DaemonPage | undefined
  readonly #onLost: (error: Error) => void
  readonly #onRefused: (refusal: Refusal) => void
  readonly #servers: Server[] = []
  readonly #unixCallers = new WeakMap<Socket, Principal>()
  readonly #posix = loadPosix()
  #tlsFiles: TlsFiles | undefined
  #tlsServer: TlsServer | undefined
  #pageServer: Server | undefined
  /** With its token; undefined if there is no page. */
  pageAddress: string | undefined
  #tokens: Tokens | undefined
  #reportedMs = Number.NEGATIVE_INFINITY

  constructor({ settings, handler, buckets, page, onLost, onRefused }: ListenersOptions) {
    this.#settings = settings
    this.#handler = handler
    this.#buckets = buckets
    this.#page = page
    this.#onLost = onLost
    this.#onRefused = onRefused
    this.connections = new Connections(settings.limits)
  }

  /** Reason for which callers over the unix socket cannot be identified, or undefined. */
  get credentialsReason(): string | undefined {
    return this.#posix.reason
  }

  /** Throws a `SettingsError` if files cannot be used, or if the settings are unsafe. */
  async readSecrets(): Promise<void> {
    const { tcp } = this.#settings
    if (tcp.tokens !== '') this.#tokens = await Tokens.read(tcp.tokens)
    const listen = parseListen(tcp.listen)
    if (listen !== undefined && tcp.certificate !== '') this.#tlsFiles = this.#readTlsFiles()
    if (listen === undefined || LOOPBACK.test(listen.address)) return
    if (tcp.certificate !== '' && this.#tokens !== undefined && this.#tokens.count > 0) return
    throw new SettingsError('tcp.listen: beyond loopback only with tcp.tokens, tcp.certificate and tcp.key')
  }

  /** Reads new tokens and certificates. Throws if any is invalid, and keeps all old ones. */
  async reload(): Promise<void> {
    const { tcp } = this.#settings
    const tokens = tcp.tokens === '' ? undefined : await Tokens.read(tcp.tokens)
    const context = this.#tlsServer && this.#readTlsFiles()
    if (context !== undefined) this.#tlsServer?.setSecureContext(context)
    this.#tokens = tokens
  }

  async listenUnix(path: string, mode: number): Promise<void> {
    await prepareSocketFile(path)
    const server = this.#unixServer()
    // The umask keeps other users out until `chmod` sets the mode.
    const before = process.umask(0o177)
    try {
      server.listen({ path, backlog: BACKLOG })
    } finally {
      process.umask(before)
    }
    await this.#listening(server, 'socket.path')
    await chmod(path, mode)
  }

  /** Listens on a unix socket that the service manager has made. */
  async listenPassed(fd: number): Promise<void> {
    const server = this.#unixServer()
    server.listen({ fd })
    await this.#listening(server, 'the socket that was passed')
    // Node reports the address of a TCP socket, but none for a unix socket that Node has not bound itself.
    if (typeof server.address() !== 'object' || server.address() === null) return
    server.close()
    throw new SettingsError('a socket that was passed is no unix socket')
  }

  /** Resolves to the port. */
  async listenTcp(): Promise<number> {
    const { tcp, limits } = this.#settings
    const { address, port } = parseListen(tcp.listen) as { address: string; port: number }
    const files = this.#tlsFiles
    const server = files === undefined ? createServer(optionsOf(limits)) : this.#makeTlsServer(files)
    if (files === undefined && address === LOOPBACK_V4) this.#pageServer = server
    this.#attach(server, (...asked) => this.#authenticate(...asked))
    server.listen({ host: address, port, backlog: BACKLOG })
    await this.#listening(server, 'tcp.listen')
    const bound = server.address() as { port: number }
    if (server === this.#pageServer) this.pageAddress = this.#page?.addressOn(bound.port)
    return bound.port
  }

  /** Stops accepting; requests under way may finish. */
  async close(): Promise<void> {
    const closed = this.#servers.map(server => new Promise(resolve => server.close(resolve)))
    const closeAll = setTimeout(() => {
      for (const server of this.#servers) server.closeAllConnections()
    }, GRACE_MS)
    // Connections that become idle would otherwise wait for their next request.
    const closeIdle = setInterval(() => {
      for (const server of this.#servers) server.closeIdleConnections()
    }, SWEEP_MS)
    await Promise.all(closed)
    clearTimeout(closeAll)
    clearInterval(closeIdle)
  }

  #unixServer(): Server {
    const server = createServer(optionsOf(this.#settings.limits))
    const admins = new Set(this.#settings.admins as number[])
    server.on('connection', (socket: Socket) => {
      const credentials = this.#posix.posix?.peerCredentials(socket)
      this.#unixCallers.set(socket, unixPrincipal(credentials, admins, this.#posix.reason))
    })
    server.on('listening', () => this.#posix.posix?.refuseDescriptors(server))
    this.#attach(server, ({ socket }) => this.#unixCallers.get(socket) as Principal)
    return server
  }

  #makeTlsServer(files: TlsFiles): TlsServer {
    const { limits } = this.#settings
    this.#tlsServer = createTlsServer({
      ...optionsOf(limits),
      ...files,
      minVersion: 'TLSv1.2',
      handshakeTimeout: TLS_HANDSHAKE_MS,
    })
    // Connections in their TLS handshake are not in `connections` yet.
    this.#tlsServer.maxConnections = limits.connections
    this.#tlsServer.on('tlsClientError', (_error, socket) => socket.destroy())
    return this.#tlsServer
  }

  #readTlsFiles(): TlsFiles {
    const { certificate, key } = this.#settings.tcp
    try {
      const files = {
        cert: readTrustedFile(certificate, { sizeMax: PEM_SIZE_MAX }),
        key: readTrustedFile(key, { sizeMax: PEM_SIZE_MAX, isSecret: true }),
      }
      // Throws if the files are not a certificate and its key.
      createSecureContext(files)
      return files
    } catch (error) {
      throw new SettingsError(`tcp.certificate or tcp.key: ${reasonOfFile(error)}`)
    }
  }

  #attach(server: Server, authenticate: Authenticate): void {
    const isTls = server === this.#tlsServer
    server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => {
      if (!this.connections.admit(socket, this.#callerOf(socket))) this.#refuse(socket, TOO_MANY_CONNECTIONS)
    })
    server.on('request', (request, response) => {
      if (!this.connections.handleRequest(request, response)) return
      if (server === this.#pageServer && this.#page?.paths.has(pathOf(request)))
        this.#page.handle(request, response)
      else this.#handler.handle(request, response, authenticate)
    })
    server.setTimeout(this.#settings.limits.idleMs, (socket: Socket) => {
      if (this.connections.isStuck(socket)) socket.destroy()
    })
    server.on('connect', (_request, socket) => this.#refuse(socket, NO_PROXY))
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      const refusal = refusalOf(error)
      // While an answer is under way, the peer would take a second one for a part of it.
      if (refusal === undefined || !socket.writable || this.connections.isBusy(socket)) socket.destroy()
      else this.#refuse(socket, refusal)
    })
    this.#servers.push(server)
  }

  /** The owner of a connection before its first request: over TCP only the address is known. */
  #callerOf(socket: Socket): Caller {
    return this.#unixCallers.get(socket) ?? { owner: `address:${placeOf(socket)}`, isAdmin: false }
  }

  #refuse(socket: Duplex, refusal: Refusal): void {
    this.#onRefused(refusal)
    endWithProblem(socket, refusal)
  }

  /** Rejects with an error that an operator can act on. */
  async #listening(server: Server, setting: string): Promise<void> {
    try {
      await once(server, 'listening')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new SocketFileError('ERR_SOCKET_LISTEN', `${setting}: cannot listen there: ${code}`)
    }
    server.on('error', error => this.#report(error))
  }

  #report(error: Error): void {
    const nowMs = performance.now()
    if (nowMs - this.#reportedMs < REPORT_MS) return
    this.#reportedMs = nowMs
    this.#onLost(error)
  }

  /** Identifies a caller over TCP. */
  #authenticate(request: IncomingMessage, isOpen: boolean, isAgain: boolean): Principal {
    const waitMs = isAgain ? 0 : this.#buckets.acquire(`address:${placeOf(request.socket)}`)
    if (waitMs > 0)
      throw new Refusal('rate', 'Too many requests from this address.', { retryAfterMs: waitMs })
    if (isOpen || this.#tokens === undefined) return ANONYMOUS
    const [, token] = /^Bearer ([!-~]+)$/i.exec(request.headers.authorization ?? '') ?? []
    const principal = token === undefined ? undefined : this.#tokens.find(token)
    if (principal === undefined) throw new Refusal('unauthenticated', 'A valid bearer token is needed.')
    return principal
  }
}

function pathOf({ url = '' }: IncomingMessage): string {
  const end = url.indexOf('?')
  return end < 0 ? url : url.slice(0, end)
}

/** All loopback addresses are one place: this host has millions of them. */
function placeOf({ remoteAddress = '' }: Socket): string {
  return FROM_LOOPBACK.test(remoteAddress) ? 'loopback' : remoteAddress
}

function optionsOf({ headerBytes, requestMs, idleMs }: Limits): ServerOptions {
  const headersTimeout = Math.min(requestMs, HEADERS_MS_MAX)
  return {
    maxHeaderSize: headerBytes,
    headersTimeout,
    // Bodies that an operation reads have their own timeout; this one is for bodies that no operation reads.
    requestTimeout: headersTimeout + requestMs + CHECK_MS,
    connectionsCheckingInterval: CHECK_MS,
    keepAliveTimeout: idleMs,
    requireHostHeader: false,
    noDelay: true,
  }
}
