/** An HTTP server of its own for a page, on loopback alone. */
import { createServer, type Server } from 'node:http'
import type { PageHandler } from './page-handler.ts'

const LOOPBACK = '127.0.0.1'
const CONNECTIONS_MAX = 64

export class PageServer {
  readonly #page: PageHandler
  readonly #server: Server

  constructor(page: PageHandler) {
    this.#page = page
    this.#server = createServer({ maxHeaderSize: 8192, requestTimeout: 10_000 }, (request, response) =>
      page.handle(request, response),
    )
    this.#server.maxConnections = CONNECTIONS_MAX
  }

  /** Resolves to the address to open, with the token. Rejects as `node:net` does. */
  async listen(port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, LOOPBACK, resolve)
    })
    const address = this.#server.address()
    return this.#page.addressOn(typeof address === 'object' && address !== null ? address.port : port)
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}
