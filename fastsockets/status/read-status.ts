/** Reads the status pages of other processes, and what the kernel says of those without one, without their help, even if they are busy, stopped, or about to die. */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { pageLink } from '../../nic/index.ts'
import { KernelTables } from '../host/kernel-sockets.ts'
import { decodeStatus, type ProcessStatus, type ThreadStatus } from './decode-status.ts'
import { lightThread } from './light-thread.ts'
import { withPeers } from './name-peers.ts'
import { HEADER, HEADER_SIZE, PAGE_NAME, PAGE_SIZE, ROW_SIZE, ROWS_MAX } from './status-layout.ts'

const LINK = pageLink(PAGE_NAME)

/** The threads of all relinked processes of this user. Each connection names the process at its other end. */
export function readAllStatus(): ProcessStatus[] {
  const uid = process.geteuid?.()
  const tables = new KernelTables()
  const all = numbersIn('/proc')
    .filter(pid => ownerOf(`/proc/${pid}`) === uid)
    .flatMap(pid => statusOf(pid, tables))
  return withPeers(all)
}

/** The threads of one process; none if it is not relinked, is gone, or may not be inspected. */
export function readStatusOf(pid: number): ProcessStatus[] {
  return statusOf(pid, new KernelTables())
}

function statusOf(pid: number, tables: KernelTables): ProcessStatus[] {
  const folder = `/proc/${pid}/fd`
  const uid = ownerOf(`/proc/${pid}`) ?? NaN
  const files = numbersIn(folder).map(fd => {
    const path = join(folder, String(fd))
    return { path, link: linkOf(path) }
  })
  const loaded = files
    .filter(({ link }) => link === LINK)
    .map(({ path }) => readPage(path))
    .filter(status => status !== undefined)
    .sort((a, b) => a.thread - b.thread)
  const light = lightThread(
    pid,
    files.map(({ link }) => link),
    loaded,
    tables,
  )
  return [...(light === undefined ? [] : [light]), ...loaded].map(status => ({ pid, uid, ...status }))
}

function numbersIn(folder: string): number[] {
  try {
    return readdirSync(folder).map(Number).filter(Number.isInteger)
  } catch {
    return []
  }
}

function ownerOf(path: string): number | undefined {
  try {
    return statSync(path).uid
  } catch {
    return undefined
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

function readPage(path: string): ThreadStatus | undefined {
  let fd: number | undefined
  try {
    // The link's target may be anything: a pipe behind it would block.
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = fstatSync(fd)
    if (!stat.isFile() || stat.size !== PAGE_SIZE) return undefined
    const header = Buffer.alloc(HEADER_SIZE)
    readSync(fd, header, 0, HEADER_SIZE, 0)
    const rows = Math.min(Math.max(header.readDoubleLE(8 * HEADER.ROWS_USED) || 0, 0), ROWS_MAX)
    const page = Buffer.alloc(HEADER_SIZE + Math.floor(rows) * ROW_SIZE)
    readSync(fd, page, 0, page.length, 0)
    return decodeStatus(page)
  } catch {
    return undefined
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
