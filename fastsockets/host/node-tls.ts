/**
 * `node:tls` as it is. An import would read everything that it exports: `rootCertificates` are 144 strings, 220 KB that stay
 * (docs/decisions/0087-one-file.md).
 */
import { createRequire } from 'node:module'

export const tls = createRequire(import.meta.url)('node:tls') as typeof import('node:tls')
