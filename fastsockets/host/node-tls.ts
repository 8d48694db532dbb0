/**
 * `node:tls` by `require`. An `import` would read all its exports; `rootCertificates` allocates 144 strings, 220 KB
 * that are never freed (docs/decisions/0087-few-files.md).
 */
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** So many descriptors are enough for what this process opens while Node's thread reads certificates. */
const DESCRIPTORS_ENOUGH = 16

export const tls = require('node:tls') as typeof import('node:tls')
if (process.env.NODE_EXTRA_CA_CERTS && !hasEnoughDescriptors()) waitForCertificates()

/**
 * Newer Node opens the file of NODE_EXTRA_CA_CERTS in a thread of its own when tls is loaded, also in a program that never
 * uses TLS. Returns once that file is closed again: the program needs its last free descriptors itself.
 */
function waitForCertificates(): void {
  const { getCACertificates } = tls as { getCACertificates?: (type: 'extra') => unknown }
  getCACertificates?.('extra')
}

/** By Node alone: koffi may not load without them. */
function hasEnoughDescriptors(): boolean {
  const { closeSync, openSync } = require('node:fs') as typeof import('node:fs')
  const opened: number[] = []
  try {
    while (opened.length < DESCRIPTORS_ENOUGH) opened.push(openSync('/dev/null', 'r'))
    return true
  } catch {
    return false
  } finally {
    for (const fd of opened) closeSync(fd)
  }
}
