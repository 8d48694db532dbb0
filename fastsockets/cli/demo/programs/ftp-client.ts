/**
 * An FTP client, `basic-ftp` from npm: ftp-client.js <port> upload|download <local file> <remote name>
 *
 * Prints how long the transfer took, and for a download the digest of the received file.
 */
import { Client } from 'basic-ftp'
import { sha256OfFile } from './digest.ts'

export interface FtpTransfer {
  readonly seconds: number
  /** Present only for a download. */
  readonly sha256?: string
}

const [port, direction, localPath = '', remoteName = ''] = process.argv.slice(2)

const client = new Client()
try {
  await client.access({ host: '127.0.0.1', port: Number(port) })
  const startedAt = performance.now()
  if (direction === 'upload') await client.uploadFrom(localPath, remoteName)
  else await client.downloadTo(localPath, remoteName)
  const seconds = (performance.now() - startedAt) / 1000
  const transfer: FtpTransfer =
    direction === 'upload' ? { seconds } : { seconds, sha256: await sha256OfFile(localPath) }
  console.log(JSON.stringify(transfer))
} finally {
  client.close()
}
