/** The demo's folder: the file that is transferred, what arrives of it, and what the witnesses report. */
import { createCipheriv, createHash } from 'node:crypto'
import { accessSync, constants, mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'

export const MEGABYTE = 1 << 20

/** Memory files first: a disk would limit every transfer. */
const PLACES: readonly string[] = ['/dev/shm', tmpdir()]
const PLACES_IN_MEMORY: ReadonlySet<string> = new Set(['/dev/shm'])

/** The source file, the copy under way, and room for one more. */
const COPIES_ON_DISK = 3
/** The programs' own copies of the file: the HTTP client holds all of it. */
const COPIES_IN_MEMORY = 2

const CHUNK_SIZE = 4 * MEGABYTE
export const SOURCE_NAME = 'source.bin'

export interface SourceFile {
  readonly size: number
  readonly sha256: string
}

export class Workspace {
  readonly folder: string
  /** Digest and size of the file, once it is made. */
  source: SourceFile = { size: 0, sha256: '' }
  #runCount = 0

  /** Makes a folder where `size` bytes fit several times. It is removed when this process exits. */
  static open(size: number, keep: boolean): Workspace {
    const place = PLACES.find(candidate => hasRoom(candidate, size))
    if (place === undefined) {
      const neededMb = Math.ceil((size * COPIES_ON_DISK) / MEGABYTE)
      throw new Error(`neither ${PLACES.join(' nor ')} has ${neededMb} MiB to spare; try a smaller --size`)
    }
    return new Workspace(mkdtempSync(join(place, 'fastsockets-demo-')), keep)
  }

  private constructor(folder: string, keep: boolean) {
    this.folder = folder
    if (keep) return
    process.once('exit', () => {
      // A program that was just killed may still create a file: try again.
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
    })
  }

  get sourcePath(): string {
    return join(this.folder, SOURCE_NAME)
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  remove(name: string): void {
    rmSync(this.path(name), { force: true })
  }

  /** An empty folder for what the witnesses of one run report. */
  witnessFolder(): string {
    const folder = this.path(`witness-${++this.#runCount}`)
    mkdirSync(folder)
    return folder
  }

  /** Fills the source file with pseudo-random bytes, the same ones every time. */
  async makeSource(size: number, onProgress: (written: number) => void): Promise<void> {
    const generator = createCipheriv('aes-128-ctr', Buffer.alloc(16, 'fastsockets'), Buffer.alloc(16))
    const hash = createHash('sha256')
    const zeros = Buffer.alloc(CHUNK_SIZE)
    const file = await open(this.sourcePath, 'wx', 0o600)
    try {
      for (let written = 0; written < size; ) {
        const chunk = generator.update(zeros.subarray(0, Math.min(CHUNK_SIZE, size - written)))
        hash.update(chunk)
        await file.writeFile(chunk)
        written += chunk.length
        onProgress(written)
      }
    } finally {
      await file.close()
    }
    this.source = { size, sha256: hash.digest('hex') }
  }
}

function hasRoom(place: string, size: number): boolean {
  try {
    accessSync(place, constants.W_OK)
    const { bavail, bsize } = statfsSync(place)
    if (bavail * bsize < size * COPIES_ON_DISK) return false
  } catch {
    return false
  }
  return !PLACES_IN_MEMORY.has(place) || availableMemory() >= size * (COPIES_ON_DISK + COPIES_IN_MEMORY)
}

function availableMemory(): number {
  // Since Node 20.13; includes reclaimable memory and a container's limit.
  return process.availableMemory?.() ?? freemem()
}
