/** node:http with nginx: files, ranges, compression, large requests, a server that hangs up without a word. */
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { digest, heard, type Journal, largeBytes } from '../journal.ts'
import { type Place, play } from '../scenario.ts'

async function call({ port }: Place, journal: Journal): Promise<void> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 2 })
  async function ask(path: string, headers: Record<string, string> = {}, body?: Buffer): Promise<Buffer> {
    const method = body === undefined ? 'GET' : 'POST'
    const request = http.request({ host: '127.0.0.1', port, agent, path, headers, method }).end(body)
    journal.watch(path, request, ['socket', 'error', 'close'])
    journal.watch(`${path} sent`, request, ['finish'])
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    journal.note(path, response.statusCode, response.headers.server, request.reusedSocket)
    journal.watch(path, response, ['aborted', 'end', 'error', 'close'])
    const bytes = await buffer(response)
    await new Promise(resolve => setImmediate(resolve))
    return bytes
  }
  journal.note('/ok', digest(await ask('/ok')))
  journal.note('/large.bin', digest(await ask('/large.bin')))
  journal.note('range', digest(await ask('/large.bin', { range: 'bytes=5000-1999999' })))
  journal.note('gzip', digest(gunzipSync(await ask('/large.bin', { 'accept-encoding': 'gzip' }))))
  journal.note('/sink', digest(await ask('/sink', {}, largeBytes())))
  journal.note('/nowhere', digest(await ask('/nowhere')))
  await Promise.all(
    Array.from({ length: 30 }, () =>
      once(http.get({ host: '127.0.0.1', port, agent, path: '/ok' }), 'response').then(([response]) =>
        response.resume(),
      ),
    ),
  )
  const cut = http.get({ host: '127.0.0.1', port, agent: false, path: '/cut' })
  journal.watch('/cut', cut, ['response', 'error', 'close'])
  await heard(cut, 'close')
  agent.destroy()
}

play({ call })
