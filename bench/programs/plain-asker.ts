/** A client of the name service without the client library: `node:http` with a keep-alive agent. */
import { Agent, request } from 'node:http'

const SOCKETS_MAX = 32

export class PlainAsker {
  readonly #socketPath: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: SOCKETS_MAX })

  constructor(socketPath: string) {
    this.#socketPath = socketPath
  }

  lookUp(name: string): Promise<unknown> {
    return this.#ask('GET', name)
  }

  register(name: string, lease: string, record: object): Promise<unknown> {
    return this.#ask('PUT', name, JSON.stringify({ lease, record }))
  }

  close(): void {
    this.#agent.destroy()
  }

  /** Rejects unless the status is 200. */
  #ask(method: string, name: string, body?: string): Promise<unknown> {
    const headers =
      body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    return new Promise((resolve, reject) => {
      const call = request({
        socketPath: this.#socketPath,
        path: `/v1/names/${encodeURIComponent(name)}`,
        method,
        headers,
        agent: this.#agent,
      })
      call.once('error', reject).once('response', response => {
        let text = ''
        response.setEncoding('utf8').on('data', (piece: string) => {
          text += piece
        })
        response.once('end', () => {
          if (response.statusCode === 200) resolve(JSON.parse(text))
          else reject(new Error(text))
        })
      })
      call.end(body)
    })
  }
}
