/** When a silent host counts as dead. */
import type net from 'node:net'
import {
  IPPROTO_TCP,
  SO_KEEPALIVE,
  SOL_SOCKET,
  TCP_KEEPIDLE,
  TCP_KEEPINTVL,
  TCP_USER_TIMEOUT,
} from '../posix/constants.ts'
import { type Libc, requireLibc } from '../posix/libc.ts'

/** Idle connections are probed so often within the time after which a silent host counts as dead. */
const PROBES = 4
/** From the first unanswered probe on. */
const PROBE_INTERVAL_S = 1
const value = Buffer.alloc(4)

/** The same for a connected TCP socket of Node. */
export function limitSilenceOf(socket: net.Socket, peerTimeoutMs: number): void {
  const { fd } = (socket as unknown as { _handle: { fd: number } | null })._handle ?? { fd: -1 }
  if (fd >= 0) limitSilence(requireLibc(), fd, peerTimeoutMs)
}

/**
 * The kernel gives the connection up once the peer's host has been silent for `peerTimeoutMs`, and not before.
 * TCP_USER_TIMEOUT limits the time for which sent bytes stay unacknowledged, or wait for a peer whose buffers are full. On an idle
 * connection the kernel checks it with each keep-alive probe, so up to a second later (tcp(7), tcp_keepalive_timer in Linux).
 */
export function limitSilence(libc: Libc, fd: number, peerTimeoutMs: number): void {
  const set = (level: number, name: number, setting: number): void => {
    value.writeInt32LE(setting)
    libc.setsockopt(fd, level, name, value, value.length)
  }
  set(SOL_SOCKET, SO_KEEPALIVE, 1)
  set(IPPROTO_TCP, TCP_KEEPIDLE, Math.max(1, Math.floor(peerTimeoutMs / 1000 / PROBES)))
  set(IPPROTO_TCP, TCP_KEEPINTVL, PROBE_INTERVAL_S)
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, peerTimeoutMs)
}
