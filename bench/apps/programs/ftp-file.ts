/** What the papers' FTP sends in a second of the run, at most; the least that is worth a transfer. */
const BYTES_PER_MS = 256 * 1024

/** Bytes of the file that is sent up and down in a run of so many milliseconds. */
export function ftpFileSize(ms: number): number {
  return ms * BYTES_PER_MS
}
