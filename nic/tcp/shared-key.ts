/** The key that both hosts share. It never goes over the network (handshake-layout.ts). */
import { isAbsolute } from 'node:path'
import { NicError } from '../errors.ts'
import { policySettings } from '../policy-source.ts'
import { readTrustedFile } from '../trusted-file.ts'

export const KEY_FILE_VARIABLE = 'FASTSOCKETS_KEY_FILE'
/** Fewer bytes could be guessed from one recorded handshake. */
export const KEY_SIZE_MIN = 32
const KEY_SIZE_MAX = 4096
const NEW_LINES = /[\r\n]+$/

/** The path of the key file; undefined if there is none. */
export function keyFile(): string | undefined {
  return process.env[KEY_FILE_VARIABLE] || policySettings().keyFile
}

/** The key; undefined if no file is named. Throws `ERR_NIC_KEY` if the file may not be used. */
export function readKey(): Buffer | undefined {
  const path = keyFile()
  if (path === undefined) return undefined
  if (!isAbsolute(path)) throw refused(`${path} must be an absolute path`)
  let bytes: Buffer
  try {
    bytes = readTrustedFile(path, { sizeMax: KEY_SIZE_MAX, isPrivate: true })
  } catch (error) {
    throw refused((error as Error).message)
  }
  // Text editors add a line end, and both hosts must have the same bytes.
  const key = Buffer.from(bytes.toString('latin1').replace(NEW_LINES, ''), 'latin1')
  if (key.length < KEY_SIZE_MIN)
    throw refused(`${path} has ${key.length} bytes; a key has at least ${KEY_SIZE_MIN}`)
  return key
}

/** Without a key only processes of this host may connect. */
export function noKeyError(where: string): NicError {
  return new NicError(
    'ERR_NIC_KEY',
    `${where} is open to other hosts, and there is no key: set ${KEY_FILE_VARIABLE} to a file that both hosts have`,
  )
}

function refused(why: string): NicError {
  return new NicError('ERR_NIC_KEY', `the key file cannot be used: ${why}`)
}
