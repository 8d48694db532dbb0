/**
 * How a channel learns that its peer is gone. Within a host the driver tells: the kernel ends the connection of the doorbell,
 * which nobody else holds. Between hosts the bootstrap connection stays open as the channel's lifeline: nothing is said on it
 * any more, and its end, however it comes, is the peer's end.
 */
import type net from 'node:net'
import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'
import { openLog, receiveNow } from '../../nic/index.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'

const log = openLog('fastsockets:peers')

/** How a lifeline ends when its peer, or the way to it, has vanished without a word. */
const LOST: ReadonlySet<string> = new Set(['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENETDOWN'])

/** The channel ends when the driver says that the peer has gone. */
export function watchPeer(channel: SocketChannel): void {
  const { end } = channel.channel
  const handleEnd = (): void => {
    log('peer %s is gone', channel.peerName)
    channel.handlePeerGone(end.isCutOff === true ? brokenOff() : undefined)
  }
  channel.lifeline = {
    end() {},
    hearNow() {
      if (end.hasPeer === false) handleEnd()
    },
    ref() {},
    unref() {},
  }
  end.watchPeer?.(() => {
    handleEnd()
    tellNow(channel)
  })
}

/** Now, as the kernel would tell: who hears next that the process has ended must find its sockets ended, too. */
function tellNow(channel: SocketChannel): void {
  channel.deliveries.tellRest()
}

function brokenOff(): Error {
  return new Error(
    'the peer has broken off: it has lost its device, or was told what the protocol does not allow',
  )
}

/** The channel ends with `connection`, and ends it. */
export function tieLifeline(connection: net.Socket, channel: SocketChannel): void {
  channel.lifeline = {
    // A reset tells the peer that its sockets have not come to their end, but were cut off.
    end: isReset => void (isReset ? connection.resetAndDestroy() : connection.destroy()),
    hearNow: () => hearLifeline(connection, channel),
    ref: () => void (connection.destroyed || connection.ref()),
    unref: () => void (connection.destroyed || connection.unref()),
  }
  watchLifeline(connection, channel)
}

/** Bytes of a lifeline, which should have none. */
const heard = Buffer.alloc(1)

/** What the event loop would say of a lifeline, for those who do not let it run. */
function hearLifeline(connection: net.Socket, channel: SocketChannel): void {
  const fd = (connection as unknown as { _handle?: { fd: number } | null })._handle?.fd
  const length = fd === undefined ? 0 : receiveNow(fd, heard)
  if (length === -constants.errno.EAGAIN) return
  // Without a descriptor its 'error' may still have to be told.
  const { code } = (connection.errored ?? {}) as NodeJS.ErrnoException
  connection.destroy()
  channel.handlePeerGone(causeOf(length < 0 ? getSystemErrorName(length) : code))
}

/** What has ended the sockets, by the error that the lifeline met; undefined if the peer has simply gone. */
function causeOf(code: string | undefined): Error | undefined {
  if (code === 'ECONNRESET') return brokenOff()
  if (code === undefined || !LOST.has(code)) return undefined
  return Object.assign(new Error(`the peer is heard of no more: ${code}`), { code: 'ETIMEDOUT' })
}

function watchLifeline(connection: net.Socket, channel: SocketChannel): void {
  const handleEnd = (cause?: Error): void => {
    log('peer %s is gone', channel.peerName)
    connection.destroy()
    channel.handlePeerGone(cause)
    tellNow(channel)
  }
  connection.on('data', () => handleEnd())
  connection.on('end', () => handleEnd())
  connection.on('close', () => handleEnd())
  connection.on('error', error => handleEnd(causeOf((error as NodeJS.ErrnoException).code)))
  connection.unref()
  connection.resume()
  if (connection.destroyed || connection.readableEnded) handleEnd()
}
