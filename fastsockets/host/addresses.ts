import { isIPv4, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { performance } from '../../nic/real-time.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'

/** How long a look at the network interfaces is believed. */
const INTERFACES_TTL_MS = 1000

let ownAddresses = new Set<string>()
let lookedAtMs = Number.NEGATIVE_INFINITY

/**
 * The address that a connect to `address` really reaches, if it is one of this host's and the fast way may carry it:
 * `0.0.0.0` and `::` mean the loopback address, as they do to the kernel.
 */
export function reachableOwnAddress(address: string): string | undefined {
  if (address === '0.0.0.0') return '127.0.0.1'
  if (address === '::') return '::1'
  if (address === '127.0.0.1') return address
  if (isIPv4(address)) return address.startsWith('127.') || isOwn(address) ? address : undefined
  if (!isIPv6(address) || address.includes('%')) return undefined
  return address === '::1' || isOwn(address) ? address : undefined
}

/** Whether the fast way may carry a connect to exactly this address. */
export function isReachable(address: string, family: number): boolean {
  return family === (address.includes(':') ? 6 : 4) && reachableOwnAddress(address) === address
}

/** A dual-stack listener sees IPv4 callers at mapped addresses. */
export function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=[\d.]+$)/, '')
}

/** An IPv4 address in the form of an IPv6 one. */
const MAPPED = /^::ffff:[\da-f]+[.:]/i

/**
 * Why `address`, which is not reachable here, is left to TCP. An address with a zone, or a mapped one, may be of this host or
 * another.
 */
export function reasonAgainstAddress(address: string): FallbackReason {
  return fallbackReason(address.includes('%') || MAPPED.test(address) ? 'ADDRESS' : 'REMOTE_HOST')
}

/** The address from which the kernel would connect to `address` of this host. */
export function sourceAddressFor(address: string): string {
  return address.startsWith('127.') ? '127.0.0.1' : address
}

/** Every address at which a connect from this host reaches it, without those that need a zone; loopback first. */
export function allOwnAddresses(family: 4 | 6): string[] {
  const loopback = family === 4 ? '127.0.0.1' : '::1'
  isOwn(loopback)
  const is = family === 4 ? isIPv4 : isIPv6
  return [...new Set([loopback, ...ownAddresses])].filter(one => is(one) && !one.startsWith('fe80:'))
}

function isOwn(address: string): boolean {
  const nowMs = performance.now()
  if (nowMs - lookedAtMs > INTERFACES_TTL_MS) {
    ownAddresses = new Set(
      Object.values(networkInterfaces()).flatMap(list => (list ?? []).map(entry => entry.address)),
    )
    lookedAtMs = nowMs
  }
  return ownAddresses.has(address)
}
