/** One simulated process with sockets: programs that write, read, and end. */
import { REFUSAL } from '../../fastsockets/bootstrap/bootstrap-layout.ts'
import type { Accepted, SocketStream } from '../../fastsockets/stream/socket-channel.ts'
import { ChannelProcess } from './channel-process.ts'
import { Broken } from './ledger.ts'
import { Connection, type SimulatedSocketEnd } from './socket-end.ts'

export class SocketProcess extends ChannelProcess<Connection, SimulatedSocketEnd> {
  protected readonly socketsMax = 12

  override check(): void {
    super.check()
    for (const end of this.ends) end.check()
  }

  protected override connect(to: SocketProcess): void {
    const channel = this.channels.get(to)
    if (channel === undefined || !to.isAlive) return
    const connection = new Connection(this.all.length, this, to, this.random)
    this.all.push(connection)
    const end = connection.client
    const stream = channel.connect(end, connection.id + 1, '10.0.0.1', 4)
    if (stream === undefined) throw new Broken('a channel has no room for a socket')
    end.stream = stream
    this.ends.add(end)
  }

  protected accept(stream: SocketStream, port: number, promised: number): number | Accepted {
    const connection = this.all[port - 1]
    if (connection === undefined || connection.to !== this) throw new Broken(`a CONNECT to port ${port}`)
    if (this.random.chance(0.05)) {
      connection.isRefused = true
      return REFUSAL.NOT_LISTENING
    }
    const { server } = connection
    if (server.stream !== undefined) throw new Broken(`connection ${connection.id} is accepted twice`)
    const clientPort = this.allocatePort(stream, promised)
    server.stream = stream
    stream.sink = server
    return {
      clientPort,
      begin: () => {
        server.isConnected = true
        this.ends.add(server)
      },
    }
  }
}
