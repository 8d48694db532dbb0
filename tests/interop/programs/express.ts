/** express: JSON, files, compression, streams, errors, requests that are given up. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http, { type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer, json, text } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import compression from 'compression'
import express, { type NextFunction, type Request, type Response } from 'express'
import { HOST } from '../../support/placement.ts'
import { describeError, digest, digestOf, heard, type Journal, largeBytes } from '../journal.ts'
import { closed, type Place, play, type Service } from '../scenario.ts'

async function serve(journal: Journal): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), 'interop-express-'))
  writeFileSync(join(folder, 'large.bin'), largeBytes())
  const app = express()
  app.use((request, response, next) => {
    journal.note(`server ${request.path}`, request.method)
    response.once('finish', () => journal.note(`server ${request.path}`, 'finish', response.statusCode))
    response.once('close', () => journal.note(`server ${request.path}`, 'close', response.writableFinished))
    next()
  })
  app.use('/files', express.static(folder))
  app.use(
    '/compressed',
    compression(),
    (_, response) => void response.json({ text: 'again '.repeat(50_000) }),
  )
  app.post('/json', express.json({ limit: '1mb' }), (request, response) => void response.json(request.body))
  app.post('/sink', async (request, response) => void response.send(await digestOf(request)))
  app.get('/events', (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let i = 0; i < 5; i++) response.write(`data: ${i}\n\n`)
  })
  app.get('/broken', () => {
    throw new Error('broken handler')
  })
  app.use((error: Error, request: Request, response: Response, _: NextFunction) => {
    journal.note(`server ${request.path}`, describeError(error))
    response.status((error as { status?: number }).status ?? 500).send('sorry')
  })
  const server = app.listen(0, HOST)
  await once(server, 'listening')
  return {
    place: { port: (server.address() as { port: number }).port },
    close: async () => {
      server.closeAllConnections()
      await closed(server)
      rmSync(folder, { recursive: true })
    },
  }
}

async function call({ port }: Place, journal: Journal): Promise<void> {
  const agent = new http.Agent({ keepAlive: true })
  async function ask(path: string, body?: string | Buffer, headers: Record<string, string> = {}) {
    const method = body === undefined ? 'GET' : 'POST'
    const request = http.request({ host: HOST, port, agent, path, method, headers }).end(body)
    journal.watch(path, request, ['error', 'close'])
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    journal.note(path, response.statusCode, request.reusedSocket, response.headers['content-type'])
    journal.watch(path, response, ['aborted', 'end', 'error', 'close'])
    return { request, response }
  }

  const typed = { 'content-type': 'application/json' }
  const document = JSON.stringify({ list: Array.from({ length: 20_000 }, (_, i) => `entry ${i}`) })
  journal.note('/json', digest(JSON.stringify(await json((await ask('/json', document, typed)).response))))
  journal.note('/json', await text((await ask('/json', '{"broken', typed)).response))
  journal.note('/json', await text((await ask('/json', Buffer.alloc(2_000_000, ' '), typed)).response))
  journal.note('/files', digest(await buffer((await ask('/files/large.bin')).response)))
  const range = { range: 'bytes=1000000-3999999' }
  journal.note(
    '/files range',
    digest(await buffer((await ask('/files/large.bin', undefined, range)).response)),
  )
  journal.note('/sink', await text((await ask('/sink', largeBytes())).response))
  const zipped = await buffer((await ask('/compressed', undefined, { 'accept-encoding': 'gzip' })).response)
  journal.note('/compressed', digest(gunzipSync(zipped)))
  journal.note('/broken', await text((await ask('/broken')).response))
  journal.note('/nowhere', digest(await text((await ask('/nowhere')).response)))

  const { request, response } = await ask('/events')
  let heardText = ''
  response.setEncoding('utf8')
  response.on('data', part => {
    heardText += part
    if (heardText.endsWith('4\n\n')) request.destroy()
  })
  await heard(response, 'close')
  journal.note('/events', digest(heardText))

  await Promise.all(
    Array.from({ length: 40 }, async (_, i) => {
      const body = JSON.stringify({ i })
      const post = http.request({
        host: HOST,
        port,
        agent,
        path: '/json',
        method: 'POST',
        headers: typed,
      })
      const [answer] = await once(post.end(body), 'response')
      journal.note(`concurrent ${i}`, await text(answer))
    }),
  )
  agent.destroy()
}

play({ serve, call })
