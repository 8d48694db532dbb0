/**
 * Publishes listening sockets in the rendezvous folder. A socket is bound to a new name, listens, and is renamed: a name
 * is never without a listener, and replaces what an earlier process has left. The folder is locked meanwhile (flock(2)),
 * as well as it can be: without the lock a name of another process may be lost, and with it that process's fast way.
 */
import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  unlinkSync,
} from 'node:fs'
import type * as net from 'node:net'
import { openLog } from '../log.ts'
import { policySettings } from '../policy-source.ts'
import { O_PATH } from '../posix/constants.ts'
import type { Libc } from '../posix/libc.ts'
import { refuseDescriptors } from '../posix/unix-socket.ts'
import { randomBytes } from '../random.ts'
import { forgetSocketFile, noteSocketFile, onSocketFilesLeft } from '../threads/thread-ranges.ts'
import { reasonAgainstFolder, rendezvousFolder } from './folder.ts'
import { inFolder } from './in-folder.ts'
import { newName, SLOTS, slotName } from './names-layout.ts'
import { entriesIn, isStale, ownSweeper, remove } from './sweeping.ts'

const log = openLog('fastsockets:rendezvous')

/** Without users that the policy names only our own user may connect. The kernel tells who does, in any case. */
const MODE_OWN = 0o600
const MODE_OTHERS = 0o666
const OPEN = O_PATH | (constants.O_NOFOLLOW ?? 0)

/** Whose socket a name leads to: this publication's, another one's, or none. */
export type NameState = 'own' | 'other' | 'missing'

/** A published socket. */
export interface Publication {
  /** Those that it has got, in the order of asking; the slots come last. */
  readonly names: readonly string[]
  /** Asks the file system. */
  stateOf(name: string): NameState
  /** Removes its names and closes the server. */
  close(): void
}

interface Published extends Publication {
  /** What a process does that ends. */
  leave(): void
}

const published = new Set<Published>()

/**
 * Lets `server`, which does not listen yet, listen at all of `names`; or gives the reason why it does not listen. A name
 * that cannot be had, for example because a stranger holds it in a folder with the sticky bit, is left out. `shared`:
 * listeners of which the server gets a free slot besides.
 */
export function publishSocket(
  server: net.Server,
  names: readonly string[],
  shared: readonly string[] = [],
  sweeper = ownSweeper,
): Publication | string {
  const against = reasonAgainstFolder(true)
  if (against !== undefined) return against
  server.on('error', error => log('%s', error.message))
  const outcome = inFolder((at, libc) => {
    if (libc === undefined) return listenIn(server, at, names)
    sweeper.begin(libc, at)
    return listenIn(server, at, [...names, ...shared.flatMap(listener => freeSlot(libc, at, listener))])
  })
  if (typeof outcome === 'string') return outcome
  if (published.size === 0) process.on('exit', leaveAll)
  published.add(outcome)
  return outcome
}

function listenIn(server: net.Server, at: string, names: readonly string[]): Published | string {
  const start = `${at}/${newName(randomBytes(16))}`
  // `exclusive`: in a cluster worker the primary would listen in its place.
  server.listen({ path: start, exclusive: true })
  server.unref()
  if (!server.listening) return `no socket can be made in ${rendezvousFolder()}`
  refuseDescriptors(server)
  try {
    const { dev, ino } = allowCallers(start)
    const had = names.filter(name => takeName(start, `${at}/${name}`, `${at}/${newName(randomBytes(16))}`))
    unlinkSync(start)
    if (had.length > 0) return publicationOf(server, had, dev, ino)
    server.close()
    const what = names.length === 0 ? 'no slot is free' : `the name ${names[0]} cannot be had`
    return `${what} in ${rendezvousFolder()}: DEBUG=fastsockets:rendezvous says why`
  } catch (error) {
    server.close()
    return `the rendezvous folder ${rendezvousFolder()} cannot be used: ${(error as Error).message}`
  }
}

/** The socket's file gets its mode. chmod(2) would follow a link that the owner of the folder has put in its place. */
function allowCallers(path: string): BigIntStats {
  const file = openSync(path, OPEN)
  try {
    const stat = fstatSync(file, { bigint: true })
    if (!stat.isSocket()) throw new Error(`${path} was replaced`)
    chmodSync(`/proc/self/fd/${file}`, policySettings().hasUsers === true ? MODE_OTHERS : MODE_OWN)
    return stat
  } finally {
    closeSync(file)
  }
}

/** The first slot that no process has; none if all are taken. In a folder with the sticky bit others' files stay. */
function freeSlot(libc: Libc, at: string, listener: string): string[] {
  for (let slot = 0; slot < SLOTS; slot++) {
    const name = slotName(listener, slot)
    const stat = lstatSync(`${at}/${name}`, { throwIfNoEntry: false })
    if (stat === undefined) return [name]
    if (stat.uid === process.geteuid?.() && stat.isSocket() && isStale(libc, `${at}/${name}`)) return [name]
  }
  return []
}

/** A second link, renamed: several names lead to one socket. */
function takeName(socket: string, name: string, spare: string): boolean {
  try {
    linkSync(socket, spare)
    renameSync(spare, name)
    return true
  } catch (error) {
    log('not published: %s', (error as Error).message)
    remove(spare)
    return false
  }
}

function publicationOf(server: net.Server, names: readonly string[], dev: bigint, ino: bigint): Published {
  noteSocketFile(ino)
  const leave = (): void => {
    forgetSocketFile(ino)
    inFolder(at => {
      for (const name of names) {
        const stat = lstatSync(`${at}/${name}`, { bigint: true, throwIfNoEntry: false })
        // Another listener may have replaced it.
        if (stat?.ino === ino && stat.dev === dev) remove(`${at}/${name}`)
      }
    })
  }
  const publication = {
    names,
    stateOf: (name: string): NameState => {
      const stat = lstatSync(`${rendezvousFolder()}/${name}`, { bigint: true, throwIfNoEntry: false })
      if (stat === undefined) return 'missing'
      return stat.ino === ino && stat.dev === dev ? 'own' : 'other'
    },
    leave,
    close: () => {
      server.close()
      if (!published.delete(publication)) return
      if (published.size === 0) process.off('exit', leaveAll)
      leave()
    },
  }
  return publication
}

function leaveAll(): void {
  for (const publication of published) publication.leave()
}

onSocketFilesLeft(inodes => {
  inFolder(at => {
    for (const entry of entriesIn(at)) {
      if (entry === undefined) continue
      const { name } = entry
      const stat = lstatSync(`${at}/${name}`, { throwIfNoEntry: false })
      if (stat !== undefined && inodes.has(stat.ino)) remove(`${at}/${name}`)
    }
  })
})
