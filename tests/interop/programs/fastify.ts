/** fastify: its hooks in their order, schemas, streams, bodies that are too large, closing while requests run. */
import { once } from 'node:events'
import http from 'node:http'
import { Readable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { fastify } from 'fastify'
import { HOST } from '../../support/placement.ts'
import { bytesOf, describeError, digest, heard, type Journal, LARGE, largeBytes } from '../journal.ts'
import { type Place, play, type Service } from '../scenario.ts'

const HOOKS = ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'onSend', 'onResponse'] as const

async function serve(journal: Journal): Promise<Service> {
  const app = fastify({ bodyLimit: LARGE + 1, forceCloseConnections: true })
  for (const hook of HOOKS) {
    app.addHook(hook, async (request: { url: string }) => journal.note(`server ${request.url}`, hook))
  }
  app.addHook('onRequestAbort', async request => journal.note(`server ${request.url}`, 'onRequestAbort'))
  app.addHook('onError', async (request, _, error) =>
    journal.note(`server ${request.url}`, describeError(error)),
  )
  app.addHook('onClose', async () => journal.note('server', 'onClose'))
  const body = { type: 'object', required: ['count'], properties: { count: { type: 'integer' } } }
  app.post('/checked', { schema: { body } }, async request => ({ saw: request.body }))
  app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (_, bytes, done) =>
    done(null, bytes),
  )
  app.post('/echo', async request => request.body)
  app.post('/limited', { bodyLimit: 99 }, async request => request.body)
  app.get('/stream', async (_, reply) => {
    reply.send(Readable.from(Array.from({ length: 40 }, (_, i) => bytesOf(50_000, `part ${i}`))))
    return reply
  })
  app.get('/endless', (_, reply) => {
    reply.raw.writeHead(200)
    const timer = setInterval(() => reply.raw.write('tick'), 5)
    reply.raw.once('close', () => clearInterval(timer))
  })
  app.get('/broken', async () => {
    throw Object.assign(new Error('no teapot here'), { statusCode: 418 })
  })
  await app.listen({ port: 0, host: HOST })
  return { place: { port: (app.server.address() as { port: number }).port }, close: () => app.close() }
}

async function call({ port }: Place, journal: Journal): Promise<void> {
  const agent = new http.Agent({ keepAlive: true })
  async function ask(path: string, type?: string, body?: string | Buffer) {
    const method = body === undefined ? 'GET' : 'POST'
    const headers = type === undefined ? {} : { 'content-type': type }
    const request = http.request({ host: HOST, port, agent, path, method, headers }).end(body)
    journal.watch(path, request, ['error', 'close'])
    const [response] = await once(request, 'response')
    journal.note(path, response.statusCode, request.reusedSocket)
    journal.watch(path, response, ['aborted', 'end', 'error', 'close'])
    return response
  }

  for (const body of ['{"count":3}', '{"count":"many"}', 'no json'])
    journal.note('/checked', await text(await ask('/checked', 'application/json', body)))
  const type = 'application/octet-stream'
  journal.note('/echo', digest(await buffer(await ask('/echo', type, largeBytes()))))
  journal.note('/limited', await text(await ask('/limited', type, Buffer.alloc(100))))
  journal.note('/stream', digest(await buffer(await ask('/stream'))))
  journal.note('/broken', await text(await ask('/broken')))
  journal.note('/nowhere', await text(await ask('/nowhere')))
  const endless = await ask('/endless')
  await once(endless, 'data')
  endless.destroy()
  await heard(endless, 'close')
  await Promise.all(
    Array.from({ length: 50 }, async (_, i) => {
      const post = http.request({ host: HOST, port, agent, path: `/echo?${i}`, method: 'POST' })
      post.setHeader('content-type', type)
      const [answer] = await once(post.end(bytesOf(i * 500, `${i}`)), 'response')
      journal.note(`concurrent ${i}`, digest(await buffer(answer)))
    }),
  )
  agent.destroy()
}

play({ serve, call })
