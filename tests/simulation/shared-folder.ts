/**
 * The rendezvous folder of one system: a folder of the real file system, in which the product publishes real sockets. Those who
 * call one of them reach its server through the simulated kernel.
 */
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Publication, publishSocket, RENDEZVOUS_VARIABLE } from '../../nic/index.ts'
import { O_PATH } from '../../nic/posix/constants.ts'
import type { Sweeper } from '../../nic/rendezvous/sweeping.ts'

const NAMES_VARIABLE = 'FASTSOCKETS_NAMES'
const GREETING_VARIABLE = 'FASTSOCKETS_GREETING_TIMEOUT_MS'
const NOWHERE = 'nowhere'

const OPEN = O_PATH | (constants.O_NOFOLLOW ?? 0)

interface Strange {
  readonly id: string
  /** Opened, so that no other file gets the same inode. */
  readonly held: number
  readonly server: net.Server | undefined
}

/** A server that listens in the folder. */
export interface Published {
  /** Of the simulated kernel. */
  readonly place: string
  /** Its process is killed: the kernel closes the socket, and its names stay. */
  kill(): void
  readonly publication: Publication
}

export class SharedFolder {
  readonly #path = mkdtempSync(join(tmpdir(), 'simulated-rendezvous-'))
  /** Environment variables as they were. */
  readonly #before: (readonly [name: string, setting: string | undefined])[] = []
  /** By the file of a socket. */
  readonly #places = new Map<string, string>()
  readonly #published: Published[] = []
  /** What strangers have made, by name. */
  readonly #strange = new Map<string, Strange>()
  #count = 0

  constructor() {
    // There is no daemon, and the time limit is the default, whatever the environment says.
    this.#set(RENDEZVOUS_VARIABLE, this.#path)
    this.#set(NAMES_VARIABLE, `unix:${this.#path}/no-daemon`)
    this.#set(GREETING_VARIABLE, '80')
  }

  /** The place of the socket to which `path` leads. */
  placeAt(path: string): string {
    const stat = statSync(path, { throwIfNoEntry: false })
    return (stat && this.#places.get(`${stat.dev} ${stat.ino}`)) ?? NOWHERE
  }

  placeOf(name: string): string {
    return this.placeAt(join(this.#path, name))
  }

  publish(
    server: net.Server,
    names: readonly string[],
    shared: readonly string[],
    sweeper: Sweeper,
  ): Published | string {
    const publication = publishSocket(server, names, shared, sweeper)
    if (typeof publication === 'string') return publication
    const place = this.#note(publication.names[0] as string)
    const published = { place, publication, kill: () => void server.close() }
    this.#published.push(published)
    return published
  }

  /** A stranger makes something else of that name. Returns the place of a socket that listens. */
  squat(name: string, kind: 'file' | 'folder' | 'link' | 'dead' | 'socket'): string | undefined {
    const path = join(this.#path, name)
    const made = join(this.#path, `stranger-${this.#count++}`)
    let server: net.Server | undefined
    if (kind === 'file') writeFileSync(made, '')
    else if (kind === 'folder') mkdirSync(made)
    else if (kind === 'link') symlinkSync(join(this.#path, 'elsewhere'), made)
    else {
      server = new net.Server()
      server.listen({ path: made, exclusive: true })
      server.unref()
    }
    this.remove(name)
    renameSync(made, path)
    this.#places.delete(idOf(path) as string)
    const before = this.#strange.get(name)
    if (before !== undefined) release(before)
    this.#strange.set(name, { id: idOf(path) as string, held: openSync(path, OPEN), server })
    if (kind === 'dead') server?.close()
    return kind === 'socket' ? this.#note(name) : undefined
  }

  /** The stranger takes away what is still there. */
  leave(name: string): void {
    const made = this.#strange.get(name)
    this.#strange.delete(name)
    if (made === undefined) return
    if (made.id === idOf(join(this.#path, name))) this.remove(name)
    release(made)
  }

  /** rmSync of some versions of Node leaves a link that leads nowhere. */
  remove(name: string): void {
    const path = join(this.#path, name)
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (stat?.isDirectory() === true) rmdirSync(path)
    else if (stat !== undefined) unlinkSync(path)
  }

  /** The system is over. */
  close(): void {
    for (const { publication } of this.#published) publication.close()
    for (const made of this.#strange.values()) release(made)
    rmSync(this.#path, { recursive: true, force: true })
    for (const [name, setting] of this.#before) {
      if (setting === undefined) delete process.env[name]
      else process.env[name] = setting
    }
  }

  #set(name: string, setting: string): void {
    this.#before.push([name, process.env[name]])
    process.env[name] = setting
  }

  #note(name: string): string {
    const place = `folder-${this.#count++}`
    this.#places.set(idOf(join(this.#path, name)) as string, place)
    return place
  }
}

function release({ held, server }: Strange): void {
  closeSync(held)
  server?.close()
}

/** Device and inode of what has that name, without following a link. */
function idOf(path: string): string | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat && `${stat.dev} ${stat.ino}`
}
