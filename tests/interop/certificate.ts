/** A self-signed certificate of localhost, for servers, and for clients that trust it. */
import { readFileSync } from 'node:fs'

/** The fixtures are not compiled: they lie beside dist/. */
const FIXTURES = new URL('../../../tests/fixtures/', import.meta.url)
export const CERT_FILE = new URL('localhost-cert.pem', FIXTURES)
export const KEY_FILE = new URL('localhost-key.pem', FIXTURES)

export const certificate = (): { cert: Buffer; key: Buffer } => ({
  cert: readFileSync(CERT_FILE),
  key: readFileSync(KEY_FILE),
})
export const trust = (): { ca: Buffer; servername: string } => ({
  ca: readFileSync(CERT_FILE),
  servername: 'localhost',
})
