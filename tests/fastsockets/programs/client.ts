/**
 * An ordinary TCP client.
 *
 *   argv: port behaviour [a port to which it connects first, so that what the first connect loads is there]
 *   `later`: between the two it waits for a message; over the second it sends 5 bytes
 */
import { once } from 'node:events'
import net from 'node:net'
import { KIND_REQUEST } from '../../../am/message-layout.ts'
import { fastOf } from '../../../fastsockets/handle/fast-handle.ts'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import type { VirtualInterface } from '../../../nic/index.ts'
import { sendMessage } from '../../support/messages.ts'

const [port = '0', behaviour = 'hold', firstPort] = process.argv.slice(2)

if (firstPort !== undefined) {
  const first = net.connect(Number(firstPort), '127.0.0.1')
  await once(first, 'connect')
  if (behaviour === 'later') {
    report({ first: true })
    await once(process, 'message')
  }
  first.destroy()
}

const socket = net.connect(Number(port), '127.0.0.1', () => {
  report({ connected: transportOf(socket).transport, port: socket.localPort })
  if (behaviour === 'flood') flood()
  if (behaviour === 'later') socket.write('hello')
  if (behaviour === 'scribble') process.once('message', scribble)
  if (behaviour === 'cross') process.once('message', cross)
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

function ring(): VirtualInterface {
  const { _handle } = socket as unknown as { readonly _handle: unknown }
  const end = fastOf(_handle)?.stream?.channel.channel.end
  if (end === undefined) throw new Error('this client is not fast')
  return end
}

/** What else: a request where there should be a reply. */
function cross(message: unknown): void {
  const { handler } = message as { handler: number }
  const slot = 100
  const words = [1, 80, 1000, 4]
  const payload = Buffer.from('127.0.0.1')
  sendMessage(ring(), { kind: KIND_REQUEST, handler, slot, words, payload })
}

/** What a hostile peer can do: write garbage into the ring and publish it. */
function scribble(): void {
  const end = ring()
  end.reserve(1024)
  end.sendWords.fill(0x5a5a5a5a)
  // The commit writes a good frame header; what follows is garbage.
  end.commit(1024)
  report({ scribbled: true })
}
