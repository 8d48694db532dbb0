/**
 * `node:tls` by `require`. An `import` would read all its exports; `rootCertificates` allocates 144 strings, 220 KB
 * that are never freed (docs/decisions/0087-few-files.md).
 */
import { createRequire } from 'node:module'

export const tls = createRequire(import.meta.url)('node:tls') as typeof import('node:tls')
