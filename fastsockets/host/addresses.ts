import { isIPv4, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { performance } from '../../nic/performance.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'

/** How long the list of the host's addresses is cached. */
const INTERFACES_TTL_MS = 1000

let ownAddresses = new Set<string>()
let lookedAtMs = Number.NEGATIVE_INFINITY

/**
 * The address of this host that a connect to `address` reaches; undefined if the address is another host's or needs a
 * zone. As in the kernel, `0.0.0.0` and `::` mean the loopback address.
 */
export function reachableOwnAddress(address: string): string | undefined {
  if (address === '0.0.0.0') return '127.0.0.1'
  if (address === '::') return '::1'
  if (address === '127.0.0.1') return address
  if (isIPv4(address)) return address.startsWith('127.') || isOwn(address) ? address : undefined
  if (!isIPv6(address) || address.includes('%')) return undefined
  return address === '::1' || isOwn(address) ? address : undefined
}

export function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.')
}

/** True if a connect to exactly this address of this host may be accelerated. */
export function isReachable(address: string, family: number): boolean {
  return family === (address.includes(':') ? 6 : 4) && reachableOwnAddress(address) === address
}

/** The plain form of an IPv4-mapped address, which a dual-stack listener reports for an IPv4 client. */
export function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=[\d.]+$)/, '')
}

/** An IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2), with dots or in hexadecimal. */
const MAPPED = /^::ffff:[\da-f]+[.:]/i

/**
 * The fallback reason for an `address` that `reachableOwnAddress` refuses. An address with a zone or a mapped address
 * may belong to this host or to another one, so its reason is not `REMOTE_HOST`.
 */
export function reasonAgainstAddress(address: string): FallbackReason {
  return fallbackReason(address.includes('%') || MAPPED.test(address) ? 'ADDRESS' : 'REMOTE_HOST')
}

/** The address from which the kernel would connect to `address` of this host. */
export function sourceAddressFor(address: string): string {
  return address.startsWith('127.') ? '127.0.0.1' : address
}

/** All addresses of this host in `family`, loopback first; without link-local IPv6 addresses, which need a zone. */
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
