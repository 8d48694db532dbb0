/** One simulated process with raw sockets and message sockets, which it polls by promises, by hand, and by a completion queue. */
import { REFUSAL } from '../../fastsockets/bootstrap/bootstrap-layout.ts'
import { drainTicks } from '../../fastsockets/host/node-internals.ts'
import { CompletionQueue, type Member } from '../../fastsockets/raw/completion-queue.ts'
import type { Accepted, SocketStream } from '../../fastsockets/stream/socket-channel.ts'
import { ChannelProcess } from './channel-process.ts'
import { Broken } from './ledger.ts'
import { RawConnection, type RawEnd } from './raw-end.ts'

export class RawProcess extends ChannelProcess<RawConnection, RawEnd> {
  protected readonly socketsMax = 12
  /** Programs of raw sockets go on in promises. */
  override readonly isWaiting = true
  readonly #queue = new CompletionQueue()

  fail(error: unknown): void {
    this.fault ??= error
  }

  override check(): void {
    super.check()
    for (const end of this.ends) end.check()
  }

  /** What has settled within one call goes on before the next. */
  override act(players: Parameters<ChannelProcess<RawConnection, RawEnd>['act']>[0]): void {
    if (this.random.chance(0.1)) this.#poll()
    else super.act(players)
    drainTicks()
  }

  override async close(): Promise<void> {
    for (const end of this.ends) end.close(false)
    await super.close()
  }

  protected override connect(to: RawProcess): void {
    const channel = this.channels.get(to)
    if (channel === undefined || !to.isAlive) return
    const connection = new RawConnection(this.all.length, this, to, this.random)
    this.all.push(connection)
    const { client } = connection
    const addresses = {
      address: '10.0.0.1',
      source: '10.0.0.2',
      family: 'IPv4',
      serverPort: connection.id + 1,
      clientPort: 0,
    } as const
    const isAsked = client.socket.open(channel, addresses, (_refusal, isConnected) => {
      client.handleAnswer(isConnected)
      if (isConnected) this.#begin(client)
    })
    if (!isAsked) throw new Broken('a channel has no room for a socket')
    this.ends.add(client)
  }

  protected accept(stream: SocketStream, port: number, promised: number): number | Accepted {
    const connection = this.all[port - 1]
    if (connection === undefined || connection.to !== this) throw new Broken(`a CONNECT to port ${port}`)
    if (this.random.chance(0.05)) {
      connection.isRefused = true
      return REFUSAL.NOT_LISTENING
    }
    const { server } = connection
    if (server.isConnected) throw new Broken(`connection ${connection.id} is accepted twice`)
    const clientPort = this.allocatePort(stream, promised)
    return {
      clientPort,
      begin: () => {
        server.socket.adopt(stream)
        server.handleAnswer(true)
        this.ends.add(server)
        this.#begin(server)
      },
    }
  }

  #begin(end: RawEnd): void {
    if (this.random.chance(0.5)) this.#queue.add(end.socket)
  }

  #poll(): void {
    if (this.host.state !== 'running') return
    const member: Member | undefined = this.#queue.poll()
    if (member === undefined) return
    for (const end of this.ends) {
      if (end.socket !== member) continue
      // A receive that has settled within the poll has taken what was there.
      const { isReceiving } = end
      drainTicks()
      return end.tryReceive(!isReceiving)
    }
    throw new Broken('the completion queue has a socket that is closed')
  }
}
