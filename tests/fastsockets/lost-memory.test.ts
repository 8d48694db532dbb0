/**
 * A program gives memory to a socket and changes it before the socket is done with it: transferred to another thread,
 * shrunk, outgrown by WebAssembly, or used again after the socket was destroyed. That concerns this program and this
 * socket only: what can be sent is sent, as by libuv, and other sockets of the same peer see nothing.
 */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import net, { type Socket, transportOf } from '../../fastsockets/index.ts'
import { connect, type RawSocket } from '../../fastsockets/raw/index.ts'
import { WINDOW } from '../../fastsockets/stream/stream-layout.ts'
import { THRESHOLD_MIN, THRESHOLD_VARIABLE } from '../../fastsockets/stream/zcopy/threshold.ts'
import { Child } from '../support/child.ts'
import { isPatterned, patterned } from '../support/pattern.ts'
import { program, relinked } from '../support/relinked.ts'
import { reportWhen } from '../support/zcopy-reports.ts'

// Here and, by the environment, in the peers.
process.env[THRESHOLD_VARIABLE] = String(THRESHOLD_MIN)
const PAGE = 64 * 1024
/** More than one offer. */
const LARGE = 80 * PAGE
/** Longer than what is offered, and all in memory of its own. */
const POSTED = 4 * PAGE

interface Memory {
  readonly buffer: ArrayBuffer
  /** Its ArrayBuffer has nothing of it any more; the bytes are still where they were. */
  detach(): void
}

/** What the typings of Node's own have not. */
interface GrowingMemory {
  readonly buffer: ArrayBuffer
  grow(pages: number): number
}
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: { Memory: new (size: { initial: number; maximum: number }) => GrowingMemory }
}

const KINDS: Record<string, (length: number) => Memory> = {
  'that is transferred': length => {
    const buffer = new ArrayBuffer(length)
    let kept: ArrayBuffer | undefined
    return {
      buffer,
      detach() {
        kept = structuredClone(buffer, { transfer: [buffer] })
        if (kept.byteLength !== length) throw new Error('it was not transferred')
      },
    }
  },
  'of WebAssembly memory that grows': length => {
    const memory = new WebAssembly.Memory({ initial: length / PAGE, maximum: length / PAGE + 1 })
    return { buffer: memory.buffer, detach: () => void memory.grow(1) }
  },
}

type Resizable = ArrayBuffer & { resize(length: number): void }

function resizable(length: number): Resizable {
  const Constructor = ArrayBuffer as unknown as new (
    length: number,
    options: { maxByteLength: number },
  ) => Resizable
  return new Constructor(length, { maxByteLength: 2 * length })
}

/** A peer that reads, or not yet; the second socket has the same channel. */
async function connectedPeer(
  t: Test,
  isPaused: boolean,
): Promise<{ peer: Child; socket: Socket; other: Socket }> {
  const peer = new Child(t, program('zcopy-peer'), [], relinked())
  const { port } = await peer.receive<{ port: number }>()
  const other = net.connect(port, '127.0.0.1')
  await once(other, 'connect')
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  t.teardown(() => {
    socket.destroy()
    other.destroy()
  })
  t.equal(transportOf(socket).transport, 'shm')
  if (isPaused) {
    // Whether it is the right socket is seen by what it does.
    peer.send({ pause: 1 })
    await reportWhen(peer, 'the pause', ({ paused }) => paused)
  }
  return { peer, socket, other }
}

for (const isPaused of [false, true]) {
  const peerWho = isPaused ? 'a peer that reads late' : 'a peer that reads'
  for (const [kind, open] of Object.entries(KINDS)) {
    t.test(`a write of memory ${kind}, to ${peerWho}, arrives whole`, async t => {
      const { peer, socket, other } = await connectedPeer(t, isPaused)
      const memory = open(LARGE)
      const bytes = new Uint8Array(memory.buffer)
      bytes.set(patterned(0, LARGE))
      const written = new Promise(resolve => socket.write(bytes, resolve))
      memory.detach()
      t.equal(bytes.length, 0)
      socket.write(patterned(LARGE, 10))
      if (isPaused) peer.send({ resume: 1 })
      t.notOk(await written, 'no error')
      const { isIntact } = await reportWhen(peer, 'all', ({ received }) => received === LARGE + 10)
      t.ok(isIntact)
      t.notOk(other.destroyed)
      t.notOk(socket.destroyed)
    })
  }

  t.test(`a write of memory that shrinks, to ${peerWho}, arrives as it was written`, async t => {
    const { peer, socket, other } = await connectedPeer(t, isPaused)
    const buffer = resizable(LARGE)
    const bytes = new Uint8Array(buffer)
    bytes.set(patterned(0, LARGE))
    const written = new Promise(resolve => socket.write(bytes, resolve))
    buffer.resize(0)
    if (isPaused) peer.send({ resume: 1 })
    t.notOk(await written, 'no error')
    const { isIntact } = await reportWhen(peer, 'all', ({ received }) => received === LARGE)
    t.ok(isIntact)
    t.notOk(other.destroyed)
  })

  t.test(`${peerWho}: a destroyed socket's memory is the program's again`, async t => {
    const { peer, socket, other } = await connectedPeer(t, isPaused)
    const bytes = patterned(0, WINDOW)
    socket.write(bytes)
    socket.destroy()
    bytes.fill(255)
    if (isPaused) peer.send({ resume: 1 })
    const { received, isIntact } = await reportWhen(peer, 'the end', ({ ended }) => ended !== undefined)
    t.equal(received, WINDOW)
    t.ok(isIntact)
    t.notOk(other.destroyed)
  })
}

t.test('many small chunks of memory that is transferred, behind a large one', async t => {
  const { peer, socket } = await connectedPeer(t, true)
  const memory = new ArrayBuffer(LARGE)
  new Uint8Array(memory).set(patterned(0, LARGE))
  const first = LARGE - 1000 * 100
  socket.cork()
  socket.write(new Uint8Array(memory, 0, first))
  for (let i = 0; i < 1000; i++) socket.write(new Uint8Array(memory, first + 100 * i, 100))
  socket.uncork()
  const kept = structuredClone(memory, { transfer: [memory] })
  peer.send({ resume: 1 })
  const { isIntact } = await reportWhen(peer, 'all', ({ received }) => received === LARGE)
  t.ok(isIntact)
  t.equal(kept.byteLength, LARGE)
})

/** A raw socket that has received large chunks already, after which the peer has a mind to write to posted buffers itself. */
async function wornInReceiver(
  t: Test,
  isFast: boolean,
): Promise<{ peer: Child; socket: RawSocket; into: Buffer; received: number }> {
  const peer = new Child(t, program('zcopy-peer'), [], isFast ? relinked() : {})
  const { port } = await peer.receive<{ port: number }>()
  const socket = await connect({ host: '127.0.0.1', port })
  t.teardown(() => socket.close())
  t.equal(socket.transport.transport, isFast ? 'shm' : 'tcp')
  await socket.send(Buffer.of(0))
  await reportWhen(peer, 'the connection', ({ received }) => received === 1)
  peer.send({ write: LARGE })
  const into = Buffer.alloc(POSTED)
  let received = 0
  while (received < LARGE) received += await socket.recv(into)
  return { peer, socket, into, received }
}

for (const isFast of [true, false]) {
  t.test(`a receive of a raw socket over ${isFast ? 'shm' : 'tcp'} whose buffer shrinks`, async t => {
    const { peer, socket, into, received } = await wornInReceiver(t, isFast)
    const buffer = resizable(POSTED)
    const lost = socket.recv(new Uint8Array(buffer))
    const next = socket.recv(into)
    buffer.resize(0)
    peer.send({ write: POSTED })
    await t.rejects(lost, { code: 'EFAULT', syscall: 'read' })
    const length = await next
    t.ok(length > 0 && isPatterned(into.subarray(0, length), received), 'the bytes are for the next receive')
  })
}

t.test('a posted buffer that is transferred gets its bytes where they are by then, or none', async t => {
  const { peer, socket, into, received } = await wornInReceiver(t, true)
  const buffer = new ArrayBuffer(POSTED)
  const posted = socket.recv(new Uint8Array(buffer))
  const kept = structuredClone(buffer, { transfer: [buffer] })
  peer.send({ write: POSTED })
  // If the peer had no mind to write there by itself, there is nothing to copy to.
  const length = await posted.catch(({ code }) => code)
  if (length === 'EFAULT') {
    for (let left = POSTED; left > 0; ) left -= await socket.recv(into)
  } else {
    t.equal(length, POSTED)
    t.ok(isPatterned(Buffer.from(kept), received))
  }
  peer.send({ write: 10 })
  t.equal(await socket.recv(into), 10, 'and the socket goes on')
})
