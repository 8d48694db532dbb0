/** undici, and the fetch that is built into Node: pools, pipelines, streams, redirects, aborts, servers that hang up. */
import http from 'node:http'
import { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { createGzip } from 'node:zlib'
import {
  Agent,
  Client,
  fetch as ownFetch,
  Pool,
  request,
  setGlobalDispatcher,
  stream,
  WebSocket,
} from 'undici'
import { WebSocketServer } from 'ws'
import { HOST } from '../../support/placement.ts'
import { bytesOf, digest, digestOf, failureOf, type Journal, largeBytes } from '../journal.ts'
import { closed, deadPort, type Place, placeOf, play, type Service } from '../scenario.ts'

async function serve(journal: Journal): Promise<Service> {
  const server = http.createServer(async (incoming, response) => {
    const { url = '' } = incoming
    journal.note(`server ${url}`, incoming.method)
    response.once('close', () => journal.note(`server ${url}`, 'close', response.writableFinished))
    if (url.startsWith('/large')) response.end(largeBytes())
    else if (url.startsWith('/sink')) response.end(await digestOf(incoming))
    else if (url.startsWith('/gzip')) {
      response.setHeader('content-encoding', 'gzip')
      const gzip = createGzip()
      gzip.pipe(response)
      gzip.end(Buffer.alloc(300_000, 'compress me '))
    } else if (url.startsWith('/redirect')) {
      response.writeHead(302, { location: '/target' }).end()
    } else if (url.startsWith('/hang-up')) {
      response.writeHead(200, { 'content-length': 1000 })
      response.write('part')
      setTimeout(() => response.destroy(), 30)
    } else if (url.startsWith('/reset')) incoming.socket.resetAndDestroy()
    else if (url.startsWith('/endless')) {
      const timer = setInterval(() => response.write('tick'), 5)
      response.once('close', () => clearInterval(timer))
    } else incoming.pipe(response)
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', socket => socket.on('message', (data, binary) => socket.send(data, { binary })))
  const place = await placeOf(server)
  return {
    place: { ...place, dead: await deadPort() },
    close: () => {
      server.closeAllConnections()
      return closed(server)
    },
  }
}

async function call({ port, dead }: Place, journal: Journal): Promise<void> {
  const origin = `http://${HOST}:${port}`
  const refused = `http://${HOST}:${dead}`
  const agent = new Agent({ keepAliveTimeout: 1000 })
  setGlobalDispatcher(agent)
  // Node's own looks for its dispatcher in the same place.
  await fetches('global', globalThis.fetch as never)
  await fetches('undici', ownFetch as never)
  await pools()
  await webSocket()
  await agent.close()

  async function fetches(name: string, fetch: typeof globalThis.fetch): Promise<void> {
    const note = (...what: unknown[]): void => journal.note(name, ...what)
    note(digest(new Uint8Array(await (await fetch(`${origin}/large?${name}`)).arrayBuffer())))
    note(
      await (await fetch(`${origin}/sink?${name}`, { method: 'POST', body: largeBytes() as never })).text(),
    )
    const parts = Readable.toWeb(Readable.from(Array.from({ length: 30 }, (_, i) => bytesOf(60_000, `${i}`))))
    const streaming = { method: 'POST', body: parts, duplex: 'half' }
    note(await (await fetch(`${origin}/sink?stream-${name}`, streaming as never)).text())
    note(digest(await (await fetch(`${origin}/gzip?${name}`)).text()))
    const redirected = await fetch(`${origin}/redirect?${name}`)
    note(redirected.status, redirected.redirected, digest(await redirected.text()))
    note('refused', await failureOf(fetch(refused)))
    note('reset', (await failureOf(fetch(`${origin}/reset?${name}`))).replace(/ <- .*/, ''))
    note(
      'hang-up',
      (await failureOf(fetch(`${origin}/hang-up?${name}`).then(it => it.text()))).replace(/ <- .*/, ''),
    )
    const controller = new AbortController()
    const endless = await fetch(`${origin}/endless?${name}`, { signal: controller.signal })
    setTimeout(() => controller.abort(), 20)
    note('abort', await failureOf(endless.text()))
    await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        const body = bytesOf(i * 1000, `${i}`) as never
        const answer = await fetch(`${origin}/echo?${name}-${i}`, { method: 'POST', body })
        journal.note(`${name} ${i}`, digest(new Uint8Array(await answer.arrayBuffer())))
      }),
    )
  }

  async function pools(): Promise<void> {
    const pool = new Pool(origin, { connections: 4, pipelining: 5 })
    await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        const { statusCode, body } = await pool.request({
          path: `/pool?${i}`,
          method: 'PUT',
          body: `body ${i}`,
        })
        journal.note(`pool ${i}`, statusCode, await body.text())
      }),
    )
    await pool.close()
    const client = new Client(origin, { pipelining: 1 })
    journal.watch('client', client, ['connect', 'disconnect'])
    journal.note('client', await failureOf(client.request({ path: '/reset', method: 'GET' })))
    const again = await client.request({ path: '/again', method: 'POST', body: 'again' })
    journal.note('client', await again.body.text())
    const slow = await client.request({ path: '/large?slow', method: 'GET' })
    let length = 0
    for await (const chunk of slow.body) {
      length += chunk.length
      await new Promise(resolve => setImmediate(resolve))
    }
    journal.note('client', length)
    await client.close()
    const dispatcher = new Agent()
    const { body } = await request(`${origin}/one`, { method: 'POST', body: 'one', dispatcher })
    journal.note('request', await text(body))
    const parts: Buffer[] = []
    const target = new Writable({
      write(chunk, _, done) {
        parts.push(chunk)
        done()
      },
    })
    await stream(`${origin}/large?stream`, { method: 'GET', dispatcher }, () => target)
    journal.note('stream', digest(Buffer.concat(parts)))
    await dispatcher.close()
  }

  async function webSocket(): Promise<void> {
    const socket = new WebSocket(`ws://${HOST}:${port}/`)
    socket.binaryType = 'arraybuffer'
    for (const event of ['open', 'message', 'error', 'close'] as const)
      socket.addEventListener(event, it =>
        journal.note(
          'websocket',
          event,
          event === 'message' ? digest(new Uint8Array((it as unknown as MessageEvent).data)) : '',
        ),
      )
    await new Promise(resolve => socket.addEventListener('open', resolve))
    const answer = new Promise(resolve => socket.addEventListener('message', resolve))
    socket.send(largeBytes() as never)
    await answer
    const close = new Promise(resolve => socket.addEventListener('close', resolve))
    socket.close(1000)
    await close
  }
}

play({ serve, call })
