/**
 * Connects, talks, and writes random words into the memory that it shares with its peer, until the peer has had enough;
 * then comes back. argv: port seed rounds
 */
import net from 'node:net'
import { fastOf } from '../../fastsockets/handle/fast-handle.ts'
import { transportOf } from '../../fastsockets/handle/transport.ts'
import type { SocketChannel } from '../../fastsockets/stream/socket-channel.ts'
import { Random } from '../support/random.ts'

const [port, seed, rounds] = process.argv.slice(2).map(Number) as [number, number, number]
const random = new Random(seed)
const WRITES_MAX = 200
/** Garbage that the peer never comes across does no harm, and ends nothing. */
const PATIENCE_MS = 20
const STUCK_MS = 300

/** Where the last garbage went. */
let channel: SocketChannel | undefined

/** Writes something good, and random words over it and around it before the peer may have looked. */
function scribble(socket: net.Socket): void {
  const { _handle } = socket as unknown as { readonly _handle: unknown }
  channel = fastOf(_handle)?.stream?.channel
  const end = channel?.channel.end
  if (end === undefined) return
  const first = Math.max(0, end.reserve(8)) >> 2
  end.cancel()
  socket.write(random.bytes(random.within(1, 3000)))
  const words = end.sendWords
  for (let i = random.within(1, WRITES_MAX); i > 0; i--) {
    const at = random.chance(0.5) ? first + random.within(-8, 24) : random.within(0, words.length - 1)
    if (at >= 0 && at < words.length) words[at] = random.chance(0.5) ? random.word() : random.within(0, 128)
  }
}

function attack(): Promise<string> {
  return new Promise(resolve => {
    let wire = 'none'
    const socket = net.connect(port, '127.0.0.1', () => {
      wire = transportOf(socket).transport
      socket.resume()
      socket.setNoDelay(true)
      scribble(socket)
      setTimeout(() => socket.destroy(), PATIENCE_MS)
    })
    socket.on('error', () => {})
    // A stamp that is gone makes the peer wait for a frame for ever, and us for an answer.
    const stuck = setTimeout(() => {
      channel?.close()
      socket.destroy()
    }, STUCK_MS)
    socket.once('close', () => {
      clearTimeout(stuck)
      resolve(wire)
    })
  })
}

for (let round = 0; round < rounds; round++) process.send?.({ wire: await attack() })
process.disconnect()
