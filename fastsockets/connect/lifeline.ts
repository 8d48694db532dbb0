/**
 * How a channel detects the end of its peer. Within a host the driver reports it: the kernel ends the connection of the
 * doorbell, which only the two sides hold. Between hosts the bootstrap connection stays open as the channel's lifeline:
 * it carries no more bytes, and its end, for whatever reason, is the peer's end.
 */
import type net from 'node:net'
import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'
import { openLog, receiveNow } from '../../nic/index.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'

const log = openLog('fastsockets:peers')

/** Errors with which a lifeline ends if the peer, or the route to it, has vanished without a FIN or RST. */
const LOST: ReadonlySet<string> = new Set(['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENETDOWN'])

/** Ends the channel when the driver reports that the peer has gone. */
export function watchPeer(channel: SocketChannel): void {
  const { end } = channel.channel
  const handleEnd = (): void => {
    log('peer %s is gone', channel.peerName)
    channel.handlePeerGone(end.isCutOff === true ? brokenOff() : undefined)
  }
  channel.lifeline = {
    end() {},
    checkNow() {
      if (end.hasPeer === false) handleEnd()
    },
    ref() {},
    unref() {},
  }
  end.watchPeer?.(() => {
    handleEnd()
    deliverNow(channel)
  })
}

/**
 * At once, as the kernel would: the program may learn next that the peer's process has ended, and must find its sockets
 * ended.
 */
function deliverNow(channel: SocketChannel): void {
  if (!channel.isOpen) channel.deliveries.deliverRest()
}

function brokenOff(): Error {
  return new Error(
    'the peer broke the connection: it lost its device, or received what the protocol does not allow',
  )
}

/** Ties the channel and `connection` together: either ends the other. */
export function tieLifeline(connection: net.Socket, channel: SocketChannel): void {
  channel.lifeline = {
    // By a reset the peer sees that its sockets were cut off, and did not end regularly.
    end: isReset => void (isReset ? connection.resetAndDestroy() : connection.destroy()),
    checkNow: () => checkLifeline(connection, channel),
    ref: () => void (connection.destroyed || connection.ref()),
    unref: () => void (connection.destroyed || connection.unref()),
  }
  watchLifeline(connection, channel)
}

/** Receives the byte of a lifeline, which should carry none. */
const received = Buffer.alloc(1)

/** Asks the kernel for the lifeline's end, for programs that poll without the event loop. */
function checkLifeline(connection: net.Socket, channel: SocketChannel): void {
  const fd = (connection as unknown as { _handle?: { fd: number } | null })._handle?.fd
  const length = fd === undefined ? 0 : receiveNow(fd, received)
  if (length === -constants.errno.EAGAIN) return
  // Without a descriptor the socket may hold an error whose event is not emitted yet.
  const { code } = (connection.errored ?? {}) as NodeJS.ErrnoException
  connection.destroy()
  channel.handlePeerGone(causeOf(length < 0 ? getSystemErrorName(length) : code))
}

/** The cause of the sockets' end, from the lifeline's error; undefined if the peer has simply gone. */
function causeOf(code: string | undefined): Error | undefined {
  if (code === 'ECONNRESET') return brokenOff()
  if (code === undefined || !LOST.has(code)) return undefined
  return Object.assign(new Error(`the peer is received of no more: ${code}`), { code: 'ETIMEDOUT' })
}

function watchLifeline(connection: net.Socket, channel: SocketChannel): void {
  const handleEnd = (cause?: Error): void => {
    log('peer %s is gone', channel.peerName)
    connection.destroy()
    channel.handlePeerGone(cause)
    deliverNow(channel)
  }
  connection.on('data', () => handleEnd())
  connection.on('end', () => handleEnd())
  connection.on('close', () => handleEnd())
  connection.on('error', error => handleEnd(causeOf((error as NodeJS.ErrnoException).code)))
  connection.unref()
  connection.resume()
  if (connection.destroyed || connection.readableEnded) handleEnd()
}
