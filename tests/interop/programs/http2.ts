/** node:http2 in the clear and over TLS: many streams at once, large bodies, trailers, resets, GOAWAY. */
import { once } from 'node:events'
import http2, { type ClientHttp2Session, type ClientHttp2Stream, type ServerHttp2Stream } from 'node:http2'
import { buffer } from 'node:stream/consumers'
import { HOST } from '../../support/placement.ts'
import { certificate, trust } from '../certificate.ts'
import { bytesOf, digest, heard, type Journal, largeBytes } from '../journal.ts'
import { closed, deadPort, type Place, placeOf, play, type Service } from '../scenario.ts'

const { NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM } = http2.constants
/** In MB: more than one large body. */
const maxSessionMemory = 64
const KINDS = ['clear', 'secure'] as const

async function serve(journal: Journal): Promise<Service> {
  const servers = {
    clear: http2.createServer({ maxSessionMemory }),
    secure: http2.createSecureServer({ ...certificate(), maxSessionMemory }),
  }
  const sessions: Promise<unknown>[] = []
  for (const kind of KINDS) {
    const server = servers[kind]
    server.on('session', session => {
      sessions.push(heard(session, 'close'))
      journal.note(`${kind} server`, 'session', session.alpnProtocol, session.encrypted)
      journal.watch(`${kind} server`, session, ['goaway', 'error', 'close'])
    })
    server.on('stream', (stream: ServerHttp2Stream, headers) => {
      const path = String(headers[':path'])
      journal.watch(`${kind} server ${path}`, stream, ['aborted', 'end', 'error', 'close'])
      answer(stream, path)
    })
  }
  const [clear, secure] = [await placeOf(servers.clear), await placeOf(servers.secure)]
  return {
    place: { port: clear.port, secure: secure.port, dead: await deadPort() },
    close: () => Promise.all([closed(servers.clear), closed(servers.secure), ...sessions]),
  }
}

function answer(stream: ServerHttp2Stream, path: string): void {
  if (path === '/large') {
    stream.respond({ ':status': 200 })
    stream.end(largeBytes())
  } else if (path === '/trailers') {
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '4' }))
    stream.end('body')
  } else if (path === '/reset') stream.close(NGHTTP2_ENHANCE_YOUR_CALM)
  else if (path === '/endless') {
    stream.respond({ ':status': 200 })
    const timer = setInterval(() => stream.write('tick'), 5)
    stream.once('close', () => clearInterval(timer))
  } else if (path === '/goaway') {
    stream.respond({ ':status': 200 })
    stream.end('last')
    const { session } = stream
    stream.once('close', () => session?.close())
  } else {
    stream.respond({ ':status': 200 })
    stream.pipe(stream)
  }
}

async function call({ port, secure, dead }: Place, journal: Journal): Promise<void> {
  await dialogue(http2.connect(`http://${HOST}:${port}`, { maxSessionMemory }), 'clear', journal)
  await dialogue(
    http2.connect(`https://${HOST}:${secure}`, { ...trust(), maxSessionMemory }),
    'secure',
    journal,
  )

  const refused = http2.connect(`http://${HOST}:${dead}`)
  journal.watch('refused', refused, ['connect', 'error', 'close'])
  await heard(refused, 'close')
}

async function dialogue(session: ClientHttp2Session, kind: string, journal: Journal): Promise<void> {
  journal.watch(kind, session, ['connect', 'error', 'close'])
  // The second, with the last stream's number, may or may not come before the close.
  session.once('goaway', code => journal.note(kind, 'goaway', code))
  session.on('remoteSettings', settings => journal.note(`${kind} settings`, settings.maxFrameSize))

  function ask(path: string, body?: Buffer): ClientHttp2Stream {
    const stream = session.request({ ':path': path, ':method': body === undefined ? 'GET' : 'POST' })
    // An answer may come before the last of the question is written: 'finish' has no place among the others.
    const events = ['response', 'trailers', 'aborted', 'end', 'error', 'close']
    journal.watch(`${kind} ${path}`, stream, events, (event, headers) => {
      if (event === 'response') return headers[':status']
      return event === 'trailers' ? JSON.stringify(headers) : ''
    })
    journal.watch(`${kind} ${path} sent`, stream, ['finish'])
    stream.end(body)
    return stream
  }
  async function whole(path: string, body?: Buffer): Promise<void> {
    const stream = ask(path, body)
    const close = heard(stream, 'close')
    journal.note(`${kind} ${path} body`, digest(await buffer(stream)))
    await close
  }

  await whole('/small', Buffer.from('small'))
  await whole('/large')
  await whole('/echo', largeBytes())
  await Promise.all(Array.from({ length: 60 }, (_, i) => whole(`/${i}`, bytesOf(i * 1000, `${i}`))))
  await whole('/trailers')
  await new Promise<void>(resolve =>
    session.ping(Buffer.from('8 bytes.'), (error, _, payload) => {
      journal.note(kind, 'ping', error, payload)
      resolve()
    }),
  )
  const reset = ask('/reset')
  await heard(reset, 'close')
  journal.note(`${kind} /reset`, reset.rstCode)
  const endless = ask('/endless')
  await once(endless, 'data')
  endless.close(NGHTTP2_CANCEL)
  await heard(endless, 'close')
  const close = heard(session, 'close')
  await whole('/goaway')
  await close
  journal.note(kind, session.closed, session.destroyed)
}

play({ serve, call })
