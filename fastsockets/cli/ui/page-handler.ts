/**
 * Serves a page to one browser user of this host, on loopback, behind a random token: for `fastsockets ui`, and for the daemon of names.
 *
 * - The token comes once, in the address that a command prints, and then in a cookie that no other site can send
 *   (`SameSite=Strict`, RFC 6265bis section 5.6.7.1) and no script can read.
 * - `Host` must name loopback: a page of another site whose name is made to point here (DNS rebinding) sends its own name.
 * - `Origin` and `Sec-Fetch-Site` must not name another site (Fetch Metadata, W3C).
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'

const LOOPBACK = '127.0.0.1'
const BASE = `http://${LOOPBACK}`
const TOKEN_SIZE = 24
const COOKIE = 'fastsockets-page'
/** Browser tabs, and programs with the token, that listen at the same time. */
const LISTENERS_MAX = 16
/** A listener that reads no faster misses snapshots. */
const UNREAD_MAX = 8 * 1024 * 1024

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

/** What the server sends for a path. */
interface PageFile {
  readonly type: string
  readonly read: () => string | Buffer
}

export type PageFiles = Readonly<Record<string, PageFile>>

/** What page.html has in braces. */
interface PageWords {
  readonly title: string
  /** Its first script, without extension. */
  readonly script: string
  /** Shown until the first snapshot. */
  readonly waiting: string
  /** For a browser without JavaScript. */
  readonly command: string
}

/** `modules`: scripts of the page's folder that its first one imports, without extension. */
export function pageFiles(words: PageWords, modules: readonly string[]): PageFiles {
  return {
    '/': { type: 'text/html; charset=utf-8', read: () => documentOf(words) },
    '/page.css': fileOf(new URL('page.css', SOURCES), 'text/css; charset=utf-8'),
    '/preact.js': fileOf(new URL(import.meta.resolve('htm/preact/standalone')), 'text/javascript'),
    ...Object.fromEntries(
      [words.script, ...modules].map(name => [
        `/${name}.js`,
        fileOf(new URL(`${name}.js`, PAGE), 'text/javascript; charset=utf-8'),
      ]),
    ),
  }
}

function fileOf(file: URL, type: string): PageFile {
  return { type, read: () => readFileSync(file) }
}

function documentOf(words: PageWords): string {
  const text = readFileSync(new URL('page.html', SOURCES), 'utf8')
  return text.replace(/\{(\w+)\}/g, (_, name: keyof PageWords) => words[name])
}

/** Where the page gets its events. */
export const EVENTS_PATH = '/events'

interface PageOptions {
  readonly files: PageFiles
  /** The command that prints the address. */
  readonly printer: string
  /** Events, each as `eventText` makes it, for a page that has just been opened. */
  readonly greeting: () => readonly string[]
}

export class PageHandler {
  readonly #token = randomBytes(TOKEN_SIZE).toString('base64url')
  readonly #listeners = new Set<ServerResponse>()
  readonly #options: PageOptions
  #port = 0

  constructor(options: PageOptions) {
    this.#options = options
  }

  /** The address to open, with the token, of a server that listens on this port of loopback. Before any request is handled. */
  addressOn(port: number): string {
    this.#port = port
    return `http://${LOOPBACK}:${port}/?token=${this.#token}`
  }

  /** Sends an event to every open page. */
  send(event: string): void {
    for (const listener of this.#listeners) if (listener.writableLength < UNREAD_MAX) listener.write(event)
  }

  get listenerCount(): number {
    return this.#listeners.size
  }

  /** Ends the streams of open pages. */
  close(): void {
    for (const listener of this.#listeners) listener.end()
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const refusal = this.#refusalOf(request)
    if (refusal !== undefined) return end(response, refusal[0], refusal[1])
    const { pathname, searchParams } = new URL(request.url ?? '', BASE)
    const given = searchParams.get('token')
    if (given !== null) return this.#admit(given, pathname, response)
    if (!this.#isKnown(request))
      return end(
        response,
        401,
        `Open the address that \`${this.#options.printer}\` prints: it has the token.`,
      )
    if (pathname === EVENTS_PATH) return this.#subscribe(response)
    const { files } = this.#options
    const found = Object.hasOwn(files, pathname) ? files[pathname] : undefined
    if (found === undefined) return end(response, 404, 'There is no such page.')
    response.writeHead(200, { ...HEADERS, 'content-type': found.type }).end(found.read())
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
    for (const event of this.#options.greeting()) response.write(event)
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
