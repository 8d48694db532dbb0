/** node:https: an agent that keeps connections and sessions, large bodies, errors of certificates, aborts. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { buffer } from 'node:stream/consumers'
import type { TLSSocket } from 'node:tls'
import { HOST } from '../../support/placement.ts'
import { certificate, trust } from '../certificate.ts'
import { bytesOf, describeError, digest, digestOf, heard, type Journal, largeBytes } from '../journal.ts'
import { closed, deadPort, type Place, placeOf, play, type Service } from '../scenario.ts'

async function serve(journal: Journal): Promise<Service> {
  const server = https.createServer(
    { ...certificate(), ALPNProtocols: ['http/1.1'] },
    async (request, response) => {
      const { url = '' } = request
      const { alpnProtocol } = request.socket as TLSSocket
      journal.note(`server ${url}`, request.method, alpnProtocol)
      journal.watch(`server ${url}`, request, ['aborted', 'end', 'error', 'close'])
      journal.watch(`server ${url}`, response, ['finish', 'error', 'close'])
      if (url === '/sink') response.end(await digestOf(request))
      else if (url === '/large') response.end(largeBytes())
      else if (url === '/hang-up') {
        response.writeHead(200, { 'content-length': 1000 })
        response.write('part')
        setTimeout(() => request.socket.destroy(), 30)
      } else if (url === '/endless') {
        const timer = setInterval(() => response.write('tick'), 5)
        response.once('close', () => clearInterval(timer))
      } else request.pipe(response)
    },
  )
  server.on('tlsClientError', error => journal.note('server tls', describeError(error)))
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
  const agent = new https.Agent({ keepAlive: true, maxSockets: 3, ...trust() })
  const options = { host: HOST, port, agent }

  async function ask(path: string, body?: Buffer): Promise<IncomingMessage> {
    const request = https.request({ ...options, path, method: body === undefined ? 'GET' : 'POST' })
    journal.watch(path, request, ['socket', 'error', 'close'])
    journal.watch(`${path} sent`, request, ['finish'])
    request.once('socket', (socket: TLSSocket) => {
      if (request.reusedSocket) return
      journal.watch(path, socket, ['secureConnect', 'close', 'error'])
    })
    request.end(body)
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const socket = response.socket as TLSSocket
    journal.note(path, 'response', response.statusCode, 'reused', request.reusedSocket)
    journal.note(path, socket.authorized, socket.getProtocol(), socket.alpnProtocol)
    journal.watch(path, response, ['aborted', 'end', 'error', 'close'])
    return response
  }
  async function whole(path: string, body?: Buffer): Promise<Buffer> {
    const response = await ask(path, body)
    const bytes = await buffer(response)
    if (!response.closed) await heard(response, 'close')
    await new Promise(resolve => setImmediate(resolve))
    return bytes
  }

  journal.note('/small', digest(await whole('/small', Buffer.from('small'))))
  journal.note('/large', digest(await whole('/large')))
  journal.note('/sink', (await whole('/sink', largeBytes())).toString())
  journal.note('/echo', digest(await whole('/echo', largeBytes())))
  await Promise.all(
    Array.from({ length: 30 }, async (_, i) => {
      const request = https.request({ ...options, method: 'POST', path: `/${i}` })
      request.end(bytesOf(i * 3000, `${i}`))
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      journal.note(`/${i}`, digest(await buffer(response)))
    }),
  )
  const cut = await ask('/hang-up')
  cut.resume()
  await heard(cut, 'close')
  const endless = await ask('/endless')
  await once(endless, 'data')
  endless.destroy()
  await heard(endless, 'close')
  agent.destroy()

  await resume()
  const wrong = [
    ['untrusted', {}],
    ['wrong name', { ...trust(), servername: 'somebody.example' }],
    ['refused', { ...trust(), port: dead as number }],
    ['old', { ...trust(), maxVersion: 'TLSv1.1' as const }],
  ] as const
  for (const [name, more] of wrong) {
    const request = https.get({ ...options, agent: false, path: '/', ...more })
    journal.watch(name, request, ['socket', 'response', 'error', 'close'])
    await heard(request, 'close')
  }

  /** A session that one connection was given serves the next. */
  async function resume(): Promise<void> {
    let session: Buffer | undefined
    for (const name of ['first', 'second']) {
      const more = session === undefined ? {} : { session }
      const request = https.get({ ...options, agent: false, path: `/${name}`, ...trust(), ...more })
      const [socket] = (await once(request, 'socket')) as [TLSSocket]
      if (session === undefined)
        socket.once('session', given => {
          session = given
        })
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      journal.note(name, digest(await buffer(response)), 'session reused', socket.isSessionReused())
    }
  }
}

play({ serve, call })
