/** node:http as demanding programs use it. */
import { once } from 'node:events'
import http, { type IncomingMessage, type RequestOptions } from 'node:http'
import net, { type Socket } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import { createGzip, gunzipSync } from 'node:zlib'
import { HOST } from '../../support/placement.ts'
import { bytesOf, describeError, digest, digestOf, heard, type Journal, largeBytes } from '../journal.ts'
import { closed, deadPort, type Place, placeOf, play, retry, type Service } from '../scenario.ts'

/** More than one read of them, and more answers than a socket takes at once: the server must pause its parser. */
const PIPELINED = 4000

const PIECE = `${' '.repeat(8000)}~`

async function serve(journal: Journal): Promise<Service> {
  const server = http.createServer(async (request, response) => {
    const { url = '', method } = request
    if (url === '/piece') return void response.setHeader('date', 'now').end(PIECE)
    const name = `server ${url}`
    journal.note(name, method, request.httpVersion, request.headers.connection)
    journal.watch(name, request, ['aborted', 'end', 'error', 'close'])
    // Whether the kernel takes all of it at once, before the request has ended, is chance, also if both sides are plain.
    journal.watch(url === '/large' ? `${name} answer` : name, response, ['finish', 'error', 'close'])
    if (url.startsWith('/echo')) {
      response.writeHead(200, { 'content-type': 'application/octet-stream' })
      request.pipe(response)
    } else if (url === '/large') {
      response.setHeader('content-length', largeBytes().length)
      request.resume()
      response.end(largeBytes())
    } else if (url === '/slow') {
      request.resume()
      await sendUnderPressure(response)
    } else if (url === '/gzip') {
      request.resume()
      response.setHeader('content-encoding', 'gzip')
      const gzip = createGzip()
      gzip.pipe(response)
      gzip.end(Buffer.alloc(300_000, 'compress me '))
    } else if (url === '/trailers') {
      request.resume()
      response.writeHead(200, { trailer: 'x-sum' })
      response.write('body')
      response.addTrailers({ 'x-sum': '4' })
      response.end()
    } else if (url === '/hang-up') {
      request.resume()
      response.writeHead(200, { 'content-length': 1000 })
      response.write('part')
      setTimeout(() => response.destroy(), 30)
    } else if (url === '/reset') {
      request.resume()
      request.socket.resetAndDestroy()
    } else if (url.startsWith('/endless')) {
      request.resume()
      response.writeHead(200)
      const timer = setInterval(() => response.write('tick'), 5)
      response.once('close', () => clearInterval(timer))
    } else if (url === '/silent') {
      request.resume()
    } else if (url === '/sink') {
      journal.note(name, 'digest', await digestOf(request))
      response.end('thanks')
    } else if (url === '/restart') {
      request.resume()
      response.end('soon', () => restart())
    } else {
      request.resume()
      response.end(`hello ${url}`)
    }
  })
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    journal.note('server upgrade', request.headers.upgrade, head.toString())
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\nfirst')
    socket.pipe(socket)
    journal.watch('server upgrade', socket, ['end', 'finish', 'close'])
  })
  server.on('checkContinue', (request, response) => {
    journal.note('server continue', request.headers.expect)
    response.writeContinue()
    request.pipe(response)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // A client that gives up while an answer is under way resets the connection, or not.
    if (error.code === 'ECONNRESET' || error.code === 'EPIPE') return
    journal.note('server clientError', describeError(error))
    socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n')
  })
  const place = await placeOf(server)

  function restart(): void {
    journal.note('server', 'restart')
    server.close(() => server.listen(place.port, HOST))
    server.closeAllConnections()
  }

  return {
    place: { ...place, dead: await deadPort() },
    close: () => {
      server.closeAllConnections()
      return closed(server)
    },
  }
}

async function sendUnderPressure(response: http.ServerResponse): Promise<void> {
  const piece = bytesOf(256 * 1024, 'piece')
  for (let i = 0; i < 20; i++) if (!response.write(piece)) await once(response, 'drain')
  response.end()
}

async function call({ port, dead }: Place, journal: Journal): Promise<void> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 })
  const options = { host: HOST, port, agent }

  const ask = async (path: string, more: RequestOptions & { body?: string | Buffer } = {}, name = path) => {
    const { body, ...rest } = more
    const request = http.request({ ...options, path, ...rest })
    journal.watch(name, request, ['socket', 'continue', 'abort', 'error', 'close'])
    // An answer that comes in the turn in which the last byte leaves is reported first.
    journal.watch(`${name} sent`, request, ['finish'])
    request.end(body)
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    journal.note(name, 'response', response.statusCode, 'reused', request.reusedSocket)
    journal.watch(name, response, ['aborted', 'end', 'error', 'close'])
    return response
  }
  const whole = async (path: string, more: RequestOptions & { body?: string | Buffer } = {}, name = path) => {
    const response = await ask(path, more, name)
    const bytes = await buffer(response)
    if (!response.closed) await once(response, 'close')
    // The agent takes the socket back a moment after the end.
    await new Promise(resolve => setImmediate(resolve))
    return { response, bytes }
  }

  for (let i = 0; i < 3; i++) journal.note('/keep', digest((await whole('/keep')).bytes))
  journal.note('/large', digest((await whole('/large')).bytes))
  journal.note('/sink', (await whole('/sink', { method: 'POST', body: largeBytes() })).bytes)
  journal.note('/echo', digest((await whole('/echo', { method: 'POST', body: largeBytes() })).bytes))
  journal.note('/gzip', digest(gunzipSync((await whole('/gzip')).bytes)))
  const trailing = await whole('/trailers')
  journal.note('/trailers', trailing.bytes, JSON.stringify(trailing.response.trailers))
  const expecting = { method: 'POST', body: 'go on', headers: { expect: '100-continue' } }
  journal.note('/continue', (await whole('/continue', expecting)).bytes)

  const slow = await ask('/slow')
  let length = 0
  for await (const chunk of slow) {
    length += chunk.length
    await new Promise(resolve => setImmediate(resolve))
  }
  journal.note('/slow', length)

  await Promise.all(
    Array.from({ length: 60 }, async (_, i) => {
      const body = bytesOf(1000 * i, `body ${i}`)
      // Which sockets are reused depends on the order of answers.
      const request = http.request({ ...options, method: 'POST', path: `/echo/${i}` }).end(body)
      const [response] = await once(request, 'response')
      journal.note(`/echo/${i}`, response.statusCode, digest(await buffer(response)))
    }),
  )

  await aborts()
  await errors()
  await upgrade()
  agent.destroy()

  async function aborts(): Promise<void> {
    const endless = await ask('/endless')
    await once(endless, 'data')
    endless.destroy()
    await heard(endless, 'close')

    const cut = await ask('/hang-up')
    cut.resume()
    await heard(cut, 'close')

    const controller = new AbortController()
    const aborted = http.get({ ...options, path: '/endless', agent: false, signal: controller.signal })
    journal.watch('signal', aborted, ['abort', 'error', 'close'])
    const [response] = (await once(aborted, 'response')) as [IncomingMessage]
    journal.watch('signal response', response, ['aborted', 'end', 'error', 'close'])
    controller.abort()
    await heard(response, 'close')
  }

  async function errors(): Promise<void> {
    for (const [name, more] of [
      ['refused', { port: dead as number }],
      ['/reset', {}],
    ] as const) {
      const request = http.get({ ...options, path: '/reset', agent: false, ...more })
      journal.watch(name, request, ['socket', 'response', 'error', 'close'])
      await heard(request, 'close')
    }
    const timed = http.get({ ...options, path: '/silent', agent: false, timeout: 60 })
    journal.watch('timeout', timed, ['response', 'timeout', 'error', 'close'])
    await once(timed, 'timeout')
    timed.destroy()
    await heard(timed, 'close')
    const bad = net.connect(port, HOST)
    bad.end('NO SUCH THING\r\n\r\n')
    journal.note('bad', await text(bad))
    const pipelined = net.connect(port, HOST)
    pipelined.write('GET /piece HTTP/1.1\r\nhost: me\r\n\r\n'.repeat(PIPELINED - 1))
    pipelined.write('GET /piece HTTP/1.1\r\nhost: me\r\nconnection: close\r\n\r\n')
    let answers = 0
    for await (const chunk of pipelined.setEncoding('latin1')) answers += chunk.split('~').length - 1
    journal.note('pipelined', answers)
    await whole('/restart')
    const { bytes } = await retry(async () => ({
      bytes: await buffer(
        (await once(http.get({ ...options, agent: false, path: '/again' }), 'response'))[0],
      ),
    }))
    journal.note('again', bytes)
  }

  async function upgrade(): Promise<void> {
    const headers = { connection: 'upgrade', upgrade: 'echo' }
    const request = http.get({ ...options, agent: false, headers })
    const [response, socket, head] = (await once(request, 'upgrade')) as [IncomingMessage, Socket, Buffer]
    journal.note('upgrade', response.statusCode)
    journal.watch('upgrade', socket, ['end', 'finish', 'close'])
    let said = head.toString()
    socket.on('data', data => {
      said += data
    })
    socket.write('one ')
    socket.end('two')
    await heard(socket, 'close')
    journal.note('upgrade', said)
  }
}

play({ serve, call })
