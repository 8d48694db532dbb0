/**
 * A program that has the parser of http by `process.binding`, and gives it the handle of a socket that is still connecting.
 * It reports the events of the parser, and the wire under it. argv: serve MS | ask PORT
 */
import net, { type AddressInfo } from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

interface Parser {
  [callback: number]: (...args: never[]) => unknown
  initialize(type: number, resource: object, maxHeaderSize: number, lenientFlags: number): void
  consume(handle: object): void
}

interface ParserClass {
  new (): Parser
  readonly RESPONSE: number
  readonly kOnHeadersComplete: number
  readonly kOnBody: number
  readonly kOnMessageComplete: number
}

/** The second half comes by itself, a letter each `pauseMs`. */
function serve(pauseMs: number): void {
  const server = net.createServer(async socket => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst')
    for (const letter of 'other') {
      await new Promise(resolve => setTimeout(resolve, pauseMs))
      socket.write(letter)
    }
    socket.end()
  })
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}

function ask(port: number): void {
  const { binding } = process as unknown as { binding(name: string): { HTTPParser: ParserClass } }
  Object.assign(process, { noDeprecation: true })
  const { HTTPParser } = binding('http_parser')
  const socket = net.connect(port, '127.0.0.1')
  let heard = ''
  const parser = new HTTPParser()
  parser.initialize(HTTPParser.RESPONSE, {}, 0, 0)
  parser[HTTPParser.kOnHeadersComplete] = () => {
    heard += 'headers '
  }
  parser[HTTPParser.kOnBody] = (bytes: Buffer) => {
    heard += bytes.toString()
  }
  parser[HTTPParser.kOnMessageComplete] = () => {
    const { transport } = transportOf(socket)
    process.send?.({ heard, transport }, () => process.exit())
  }
  parser.consume(handleOf(socket))
}

function handleOf(socket: net.Socket): object {
  return (socket as unknown as { _handle: object })._handle
}

const [role, value] = process.argv.slice(2)
if (role === 'serve') serve(Number(value))
else ask(Number(value))
