/** One run: the programs of one job, in one mode, from start to end, with the proof of the wire they used. */
import { ChildProgram } from '../child-program.ts'
import type { Measurement } from './measurement.ts'
import type { FtpTransfer } from './programs/ftp-client.ts'
import type { FtpServerReady, Stored } from './programs/ftp-server.ts'
import type { HttpResults } from './programs/http-client.ts'
import type { HttpServerReady } from './programs/http-server.ts'
import { environmentOf, type RunMode, WIRE_OF_MODE } from './run-mode.ts'
import { assertWire, readSightings } from './witness-report.ts'
import { MEGABYTE, SOURCE_NAME, type Workspace } from './workspace.ts'

const HTTP_REQUEST_COUNT = 10_000
/** How often the file is fetched before the measured time, until V8 has compiled both programs. */
const HTTP_FILE_WARM_UPS = 2
const START_TIMEOUT_MS = 10_000

/** Uploads a file by one client, and downloads it by another. */
export async function runFtp(mode: RunMode, workspace: Workspace): Promise<Measurement[]> {
  const { source } = workspace
  const run = new Run('the FTP run', mode, workspace)
  const server = run.start('ftp-server', [workspace.folder])
  try {
    const { port } = await server.receive<FtpServerReady>(START_TIMEOUT_MS)
    const transfer = async (direction: string, localName: string, remoteName: string) => {
      const client = run.start('ftp-client', [String(port), direction, workspace.path(localName), remoteName])
      const result = await client.receive<FtpTransfer>(run.transferTimeoutMs)
      await client.stop()
      return result
    }

    const upload = await transfer('upload', SOURCE_NAME, 'uploaded.bin')
    const stored = await server.receive<Stored>(run.transferTimeoutMs)
    run.assertDigest('the uploaded file', stored.sha256)
    workspace.remove('uploaded.bin')

    const download = await transfer('download', 'downloaded.bin', SOURCE_NAME)
    run.assertDigest('the downloaded file', download.sha256)
    workspace.remove('downloaded.bin')

    await server.stop()
    const wire = run.proveWire(2 * source.size)
    return [
      { job: 'ftpUpload', mode, wire, megabytesPerSecond: rate(source.size, upload.seconds) },
      { job: 'ftpDownload', mode, wire, megabytesPerSecond: rate(source.size, download.seconds) },
    ]
  } finally {
    server.kill()
  }
}

/** Small requests on one keep-alive connection, then the file. */
export async function runHttp(mode: RunMode, workspace: Workspace): Promise<Measurement[]> {
  const { source } = workspace
  const run = new Run('the HTTP run', mode, workspace)
  const server = run.start('http-server', [workspace.sourcePath])
  try {
    const { port } = await server.receive<HttpServerReady>(START_TIMEOUT_MS)
    const client = run.start('http-client', [port, HTTP_REQUEST_COUNT, HTTP_FILE_WARM_UPS].map(String))
    const fetches = HTTP_FILE_WARM_UPS + 1
    const results = await client.receive<HttpResults>(fetches * run.transferTimeoutMs)
    await client.stop()
    run.assertDigest('the file over HTTP', results.sha256)

    await server.stop()
    const wire = run.proveWire(fetches * source.size)
    const { roundTripP50Us, roundTripP99Us } = results
    return [
      { job: 'httpFile', mode, wire, megabytesPerSecond: rate(source.size, results.fileSeconds) },
      { job: 'httpRequests', mode, wire, roundTripP50Us, roundTripP99Us },
    ]
  } finally {
    server.kill()
  }
}

class Run {
  readonly #name: string
  readonly #mode: RunMode
  readonly #workspace: Workspace
  readonly #witnessFolder: string

  constructor(name: string, mode: RunMode, workspace: Workspace) {
    this.#name = `${name}, ${mode},`
    this.#mode = mode
    this.#workspace = workspace
    this.#witnessFolder = workspace.witnessFolder()
  }

  /** Generous: 10 s, and 10 s more for each 256 MiB. */
  get transferTimeoutMs(): number {
    return 10_000 * (1 + Math.ceil(this.#workspace.source.size / (256 * MEGABYTE)))
  }

  start(program: string, args: readonly string[]): ChildProgram {
    const script = new URL(`./programs/${program}.js`, import.meta.url)
    return ChildProgram.start(
      `${program} (${this.#mode})`,
      script,
      args,
      environmentOf(this.#mode, this.#witnessFolder),
    )
  }

  assertDigest(what: string, sha256: string | undefined): void {
    const expected = this.#workspace.source.sha256
    if (sha256 === expected) return
    throw new Error(`${this.#name} failed: SHA-256 of ${what} is ${sha256}, and should be ${expected}`)
  }

  /** The wire that the witnesses saw; throws if it is not the one of this mode. */
  proveWire(bytesMin: number): string {
    const wire = WIRE_OF_MODE[this.#mode]
    assertWire(this.#name, readSightings(this.#witnessFolder), wire, bytesMin)
    return wire
  }
}

function rate(bytes: number, seconds: number): number {
  return bytes / 1e6 / seconds
}
