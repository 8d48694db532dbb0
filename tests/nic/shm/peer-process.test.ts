/** Whose memory ZCopy may touch: that of the program which connected, and of no other that has its pid. */
import { execFileSync } from 'node:child_process'
import { closeSync, constants, copyFileSync, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { BROKEN, type Driver, drivers, OK, type VirtualInterface } from '../../../nic/index.ts'
import { Child } from '../../support/child.ts'
import { CompletionLog } from '../../support/frames.ts'
import { skipHere } from '../../support/skip.ts'
import { eventually } from '../../support/until.ts'

const fixture = new URL('./exec-child.js', import.meta.url)
const shm = drivers.get('shm') as Driver
const availability = shm.availability()
if (!availability.usable) {
  t.plan(0, `SKIPPED: shm cannot be used here: ${availability.reason}`)
  process.exit()
}

const KEY_ADDRESS = 8
const ELF = Buffer.from('\x7fELF', 'latin1')
/** Where the linker puts programs that are not position independent. */
const PROGRAM_AT = 0x40_0000n
const ET_EXEC = 2

/** Whether each Node of this file has its own first page at `PROGRAM_AT`. */
function isFixed(): boolean {
  const header = Buffer.alloc(20)
  const fd = openSync(process.execPath, 'r')
  readSync(fd, header, 0, header.length, 0)
  closeSync(fd)
  return header.readUInt16LE(16) === ET_EXEC
}

async function connectChild(
  t: Test,
): Promise<{ end: VirtualInterface; child: Child; key: Buffer; why?: string }> {
  const child = new Child(t, fixture)
  const offer = shm.offer({ readsPeer: true })
  const blob = Buffer.from(offer.blob).toString('base64')
  const { key, rdmaReason } = await child.ask<{ key: string; rdmaReason?: string }>({ ask: 'connect', blob })
  const end = await offer.accepted
  t.teardown(() => end.close())
  const why = end.capabilities.rdmaReason ?? rdmaReason
  return { end, child, key: Buffer.from(key, 'base64'), ...(why === undefined ? {} : { why }) }
}

/** Reads four bytes; the status of the completion, and what came. */
function read(end: VirtualInterface, key: Buffer): { status: number | undefined; bytes: Buffer } {
  const bytes = Buffer.alloc(4)
  const local = end.register(bytes, { remoteRead: false, remoteWrite: false })
  const log = new CompletionLog()
  end.rdmaRead(local, 0, end.importKey(key), 0, 4, 1)
  end.pollCompletions(log, 1)
  local.deregister()
  return { status: log.completions[0]?.[1], bytes }
}

t.test('a peer that becomes another program is not read any more, though its connection stays', async t => {
  const { end, child, key, why } = await connectChild(t)
  if (why !== undefined) return skipHere(t, `no access to other processes here: ${why}`)
  if (!isFixed())
    t.comment('SKIPPED: this Node is position independent: what is read is not known to be there')
  else key.writeBigUInt64LE(PROGRAM_AT, KEY_ADDRESS)
  const before = read(end, key)
  t.equal(before.status, OK)
  if (isFixed()) t.ok(before.bytes.equals(ELF))

  child.send({ ask: 'exec' })
  await eventually('another program', () =>
    readFileSync(`/proc/${child.pid}/cmdline`, 'latin1').includes('setTimeout'),
  )
  const after = read(end, key)
  t.equal(after.status, BROKEN)
  t.ok(after.bytes.equals(Buffer.alloc(4)), 'nothing of it came')
  t.equal(end.state, 'open')
})

t.test('nor if a process that shares its memory keeps that alive', async t => {
  const { end, child, key, why } = await connectChild(t)
  if (why !== undefined) return skipHere(t, `no access to other processes here: ${why}`)
  if (isFixed()) key.writeBigUInt64LE(PROGRAM_AT, KEY_ADDRESS)
  const folder = t.testdir()
  const beside = { copy: join(folder, 'copy'), fifo: join(folder, 'fifo') }
  copyFileSync(process.execPath, beside.copy)
  execFileSync('mkfifo', [beside.fifo])
  t.equal(read(end, key).status, OK)
  child.send({ ask: 'exec', beside })
  await eventually('another program', () =>
    readFileSync(`/proc/${child.pid}/cmdline`, 'latin1').startsWith(beside.copy),
  )
  const after = read(end, key)
  // This throws without a reader: it is the process that shares the memory, and ends now.
  closeSync(openSync(beside.fifo, constants.O_WRONLY | constants.O_NONBLOCK))
  t.equal(after.status, BROKEN)
  t.ok(after.bytes.equals(Buffer.alloc(4)), 'nothing of it came')
})

t.test('only if both sides ask for it: then neither reads the other', async t => {
  for (const [offering, connecting] of [
    [true, false],
    [false, true],
    [false, false],
  ]) {
    const offer = shm.offer({ readsPeer: offering === true })
    const ends = await Promise.all([
      shm.connect(offer.blob, { readsPeer: connecting === true }),
      offer.accepted,
    ])
    for (const end of ends) {
      t.equal(end.capabilities.rdmaRead, false)
      t.match(end.capabilities.rdmaReason ?? '', /not asked for by both/)
      const access = { remoteRead: true, remoteWrite: true }
      t.throws(() => end.register(new Uint8Array(8), access), { code: 'ERR_NIC_UNAVAILABLE' })
    }
    for (const end of ends) end.close()
  }
})
