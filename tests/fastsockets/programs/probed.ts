/** A server that greets clients that leave at once. argv: how. Asked for it, it reports how often its sockets ended in which way. */
import net, { type AddressInfo } from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const LINE = 'a'.repeat(1024)
const LINES = 100

const greetings: Record<string, (socket: net.Socket) => void> = {
  silent: () => {},
  one: socket => void socket.write('220 hello\r\n'),
  two: socket => {
    socket.write('220 hello\r\n')
    socket.write('more\r\n')
  },
  later: socket => {
    socket.write('220 hello\r\n')
    setImmediate(() => socket.write('more\r\n'))
  },
  /** Never reads, and so hears of the end only by its writes. */
  much: socket => {
    for (let i = 0; i < LINES; i++) socket.write(LINE)
  },
}

const [, , how = ''] = process.argv
const kinds: Record<string, number> = {}
let open = 0
let transport = ''
const server = net.createServer(socket => {
  const events: string[] = []
  open++
  transport = transportOf(socket).transport
  socket.on('error', error => {
    const { code, syscall } = error as NodeJS.ErrnoException
    events.push(`${code} ${syscall}`)
  })
  socket.on('end', () => events.push('end'))
  socket.on('close', () => {
    open--
    const kind = events.join()
    kinds[kind] = (kinds[kind] ?? 0) + 1
  })
  if (how !== 'much') socket.resume()
  greetings[how]?.(socket)
})
process.on('message', () => process.send?.({ kinds, open, transport }))
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
