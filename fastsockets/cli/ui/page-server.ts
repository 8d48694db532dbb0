/**
 * Serves the page of `fastsockets ui` to one browser user of this host: on loopback alone, behind a random token.
 *
 * - The token comes once, in the address that the command prints, and then in a cookie that no other site can send
 *   (`SameSite=Strict`, RFC 6265bis section 5.6.7.1) and no script can read.
 * - `Host` must name loopback: a page of another site whose name is made to point here (DNS rebinding) sends its own name.
 * - `Origin` and `Sec-Fetch-Site` must not name another site (Fetch Metadata, W3C).
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

const LOOPBACK = '127.0.0.1'
const BASE = `http://${LOOPBACK}`
const TOKEN_SIZE = 24
const COOKIE = 'fastsockets-ui'
/** Browser tabs, and programs with the token, that listen at the same time. */
const LISTENERS_MAX = 16
/** A listener that reads no faster misses snapshots. */
const UNREAD_MAX = 8 * 1024 * 1024
const CONNECTIONS_MAX = 64

/** Nothing from elsewhere: no script, style, picture or connection (CSP level 3). */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const HEADERS = {
  'content-security-policy': POLICY,
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const

const PAGE = new URL('./page/', import.meta.url)
/** Sources of what the compiler does not copy. */
const SOURCES = new URL('../../../../fastsockets/cli/ui/page/', import.meta.url)

/** By path: the file and its media type. */
const FILES: Readonly<Record<string, { readonly file: URL; readonly type: string }>> = {
  '/': { file: new URL('page.html', SOURCES), type: 'text/html; charset=utf-8' },
  '/page.css': { file: new URL('page.css', SOURCES), type: 'text/css; charset=utf-8' },
  '/preact.js': { file: new URL(import.meta.resolve('htm/preact/standalone')), type: 'text/javascript' },
  ...Object.fromEntries(
    ['main', 'charts', 'graph', 'format', 'tables', 'table'].map(name => [
      `/${name}.js`,
      { file: new URL(`${name}.js`, PAGE), type: 'text/javascript; charset=utf-8' },
    ]),
  ),
}

export class PageServer {
  readonly #token = randomBytes(TOKEN_SIZE).toString('base64url')
  readonly #server: Server
  readonly #listeners = new Set<ServerResponse>()
  /** What a page that is opened later needs first. */
  readonly #greeting: () => readonly string[]
  #port = 0

  /** `greeting`: events, each as `eventText` makes it, for a page that has just been opened. */
  constructor(greeting: () => readonly string[]) {
    this.#greeting = greeting
    this.#server = createServer({ maxHeaderSize: 8192, requestTimeout: 10_000 }, (request, response) => {
      this.#answer(request, response)
    })
    this.#server.maxConnections = CONNECTIONS_MAX
  }

  /** Resolves to the address to open, with the token. Rejects as `node:net` does. */
  async listen(port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, LOOPBACK, resolve)
    })
    const address = this.#server.address()
    this.#port = typeof address === 'object' && address !== null ? address.port : port
    return `http://${LOOPBACK}:${this.#port}/?token=${this.#token}`
  }

  /** Sends an event to every open page. */
  send(event: string): void {
    for (const listener of this.#listeners) if (listener.writableLength < UNREAD_MAX) listener.write(event)
  }

  get listenerCount(): number {
    return this.#listeners.size
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const refusal = this.#refusalOf(request)
    if (refusal !== undefined) return end(response, refusal[0], refusal[1])
    const { pathname, searchParams } = new URL(request.url ?? '', BASE)
    const given = searchParams.get('token')
    if (given !== null) return this.#admit(given, pathname, response)
    if (!this.#isKnown(request))
      return end(response, 401, 'Open the address that `fastsockets ui` has printed: it has the token.')
    if (pathname === '/events') return this.#subscribe(response)
    const found = Object.hasOwn(FILES, pathname) ? FILES[pathname] : undefined
    if (found === undefined) return end(response, 404, 'There is no such page.')
    response.writeHead(200, { ...HEADERS, 'content-type': found.type }).end(readFileSync(found.file))
  }

  #refusalOf({ method, url, headers }: IncomingMessage): [status: number, text: string] | undefined {
    const hosts = [`${LOOPBACK}:${this.#port}`, `localhost:${this.#port}`]
    if (!hosts.includes(headers.host ?? ''))
      return [421, 'This page answers to 127.0.0.1 and localhost only.']
    const { origin } = headers
    const site = headers['sec-fetch-site'] ?? 'none'
    const isOwnOrigin = origin === undefined || hosts.some(host => origin === `http://${host}`)
    if (!isOwnOrigin || !['same-origin', 'none'].includes(String(site)))
      return [403, 'Requests of other sites are refused.']
    if (!URL.canParse(url ?? '', BASE)) return [400, 'This is no address.']
    return method === 'GET' ? undefined : [405, 'The page is only read.']
  }

  #admit(given: string, pathname: string, response: ServerResponse): void {
    if (!this.#isToken(given) || pathname !== '/') return end(response, 401, 'This is not the token.')
    const cookie = `${COOKIE}-${this.#port}=${this.#token}; HttpOnly; SameSite=Strict; Path=/`
    response.writeHead(303, { ...HEADERS, 'set-cookie': cookie, location: '/' }).end()
  }

  #isKnown({ headers }: IncomingMessage): boolean {
    const name = `${COOKIE}-${this.#port}=`
    const cookies = (headers.cookie ?? '').split(';').map(cookie => cookie.trim())
    return cookies.some(cookie => cookie.startsWith(name) && this.#isToken(cookie.slice(name.length)))
  }

  #isToken(given: string): boolean {
    const a = Buffer.from(given)
    const b = Buffer.from(this.#token)
    return a.length === b.length && timingSafeEqual(a, b)
  }

  /** Server-sent events (WHATWG HTML, section 9.2). */
  #subscribe(response: ServerResponse): void {
    if (this.#listeners.size >= LISTENERS_MAX) return end(response, 503, 'Too many pages are open.')
    response.writeHead(200, { ...HEADERS, 'content-type': 'text/event-stream' })
    for (const event of this.#greeting()) response.write(event)
    this.#listeners.add(response)
    response.on('close', () => this.#listeners.delete(response))
  }
}

/** One server-sent event. */
export function eventText(name: string, value: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(value)}\n\n`
}

function end(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { ...HEADERS, 'content-type': 'text/plain; charset=utf-8' }).end(`${text}\n`)
}
