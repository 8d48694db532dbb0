/**
 * A server of http2 answers while it reads, and the callback of that write throws. The program handles it. Sends to its
 * parent what it saw.
 */
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'

const journal: string[] = []
process.on('uncaughtException', (error: Error) => journal.push(`handled: ${error.message}`))

const server = http2.createServer()
server.on('stream', stream => {
  stream.respond()
  stream.once('data', () =>
    stream.write('answer', () => {
      throw new Error('from a callback')
    }),
  )
  stream.on('data', () => {})
  stream.on('end', () => stream.end('rest'))
})
server.listen(0, '127.0.0.1', () => {
  const session = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const request = session.request({ ':method': 'POST' })
  request.on('data', bytes => {
    journal.push(`read ${bytes}`)
    if (!request.writableEnded) request.end('asks for the rest')
  })
  request.on('end', () => {
    journal.push('end')
    session.close()
    server.close()
    process.send?.(journal, () => process.disconnect())
  })
  request.write('question')
})
