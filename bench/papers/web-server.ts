/** A web server as of HTTP/1.0: a connection for each request (sockets over EMP 2002, section 7.4). */
import { FastRawSocket } from '../../fastsockets/raw/fast-raw-socket.ts'
import type { SocketStream } from '../../fastsockets/stream/socket-channel.ts'
import { openSimulatedPair, SimulatedNetwork } from '../../nic/simulated/index.ts'
import type { Setup } from './experiments.ts'
import { newAddresses, openChannel } from './ports.ts'
import { runProgram, type Steps } from './virtual-program.ts'

const REQUEST_SIZE = 16
const REQUESTS = 8
const POLL_LIMIT = 64

/** From the call of `connect` until the response of `size` bytes has come, and both ends are closed. */
export function responseUs({ hardware, isPolling, callCycles = 0 }: Setup, size: number): number {
  const network = new SimulatedNetwork({ seed: 1, hardware })
  const [client, server] = [network.addHost(), network.addHost()]
  client.isPolling = isPolling
  server.isPolling = isPolling
  const [near, far] = openSimulatedPair(network, client, server)
  const accepted: FastRawSocket[] = []
  const accept = (stream: SocketStream) => {
    const socket = new FastRawSocket()
    socket.adopt(stream)
    accepted.push(socket)
    return { clientPort: 1024, begin() {} }
  }
  const nearChannel = openChannel(near, 'the server', () => 0)
  const farChannel = openChannel(far, 'the client', accept)
  let spentUs = 0
  const receive = function* (socket: FastRawSocket, length: number): Steps {
    const into = new Uint8Array(length)
    for (let received = 0; received < length; ) {
      const count = socket.tryRecv(into.subarray(received))
      if (count === undefined) yield 0
      else received += count
    }
  }
  const ask = function* (): Steps {
    for (let i = 0; i < REQUESTS; i++) {
      const beginUs = client.nowUs
      // connect, send, receive, close
      client.chargeCycles(4 * callCycles)
      const socket = new FastRawSocket()
      const addresses = newAddresses()
      socket.open(nearChannel, addresses, () => {})
      // The request follows at once, as from a relinked program (decision 0111).
      for (const stream of nearChannel.streams.all())
        if (!stream.isAnswered) nearChannel.presumeConnected(stream)
      socket.trySend(new Uint8Array(REQUEST_SIZE))
      yield* receive(socket, size)
      socket.close()
      spentUs += client.nowUs - beginUs
    }
  }
  const answer = function* (): Steps {
    for (let i = 0; i < REQUESTS; i++) {
      while (accepted.length === 0) if (farChannel.pollNow(POLL_LIMIT) <= 0) yield 0
      const socket = accepted.shift() as FastRawSocket
      // accept, receive, send, close
      server.chargeCycles(4 * callCycles)
      yield* receive(socket, REQUEST_SIZE)
      socket.trySend(new Uint8Array(size))
      socket.close()
    }
  }
  runProgram(near, ask())
  runProgram(far, answer())
  while (network.timeline.step());
  nearChannel.close()
  farChannel.close()
  return spentUs / REQUESTS
}
