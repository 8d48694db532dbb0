/** Asks the daemon as another user: one request for each message, its answer as a message. */
import { askHttp } from '../support/named.ts'

interface Asked {
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

const socketPath = process.argv[2] as string

process.on('message', async ({ method, path, body }: Asked) => {
  const payload = body === undefined ? undefined : JSON.stringify(body)
  const headers = payload === undefined ? {} : { 'content-type': 'application/json' }
  const { status, json } = await askHttp({ socketPath, method, path, headers, payload })
  process.send?.({ status, json })
})
process.send?.('up')
