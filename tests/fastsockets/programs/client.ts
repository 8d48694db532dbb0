/**
 * An ordinary TCP client.
 *
 *   argv: port behaviour
 */
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const [port = '0', behaviour = 'hold'] = process.argv.slice(2)

const socket = net.connect(Number(port), '127.0.0.1', () => {
  report({ connected: transportOf(socket).transport })
  if (behaviour === 'flood') flood()
  if (behaviour === 'scribble') process.once('message', scribble)
  if (behaviour === 'unref') socket.unref()
})
socket.on('data', data => report({ data: data.length }))
socket.on('end', () => report({ end: true }))
socket.on('error', error => report({ error: (error as NodeJS.ErrnoException).code }))
socket.on('close', () => report({ closed: true }))
if (behaviour !== 'unref') process.on('disconnect', () => process.exit())
else process.disconnect?.()

function report(message: object): void {
  if (process.connected) process.send?.(message)
}

function flood(): void {
  const chunk = Buffer.alloc(50_000, 'x')
  while (socket.write(chunk));
  socket.once('drain', flood)
}

/** What a hostile peer can do: write garbage into the ring and publish it. */
function scribble(): void {
  const handle = (
    socket as unknown as { _handle: import('../../../fastsockets/handle/fast-handle-contract.ts').FastHandle }
  )._handle
  const end = handle.stream?.channel.channel.end
  if (end === undefined) throw new Error('this client is not fast')
  end.reserve(1024)
  end.sendWords.fill(0x5a5a5a5a)
  // The commit writes a good frame header; what follows is garbage.
  end.commit(1024)
  report({ scribbled: true })
}
