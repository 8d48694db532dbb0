/**
 * One side of many connections: executes commands on each, a step at a time, and reports the events of each. A step is
 * over on both sides once nothing has happened for a while.
 */
import { randomUUID } from 'node:crypto'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { areApart, HOST } from '../../support/placement.ts'
import type { Act, Answer, Order, Place } from '../schedule.ts'

interface Watched {
  readonly socket: net.Socket
  readonly log: string[]
}

const NUMBER_LENGTH = 8
/** Larger counts are not compared: how much is read of a write that is broken off is the kernel's affair. */
const COUNTED_MAX = 64_000
const bytes = Buffer.alloc(20_000_000, 1)
const sockets = new Map<number, Watched>()
const transports = new Set<string>()
let lastMs = performance.now()

function note({ log }: Watched, text: string): void {
  lastMs = performance.now()
  log.push(text)
}

function noteData({ log }: Watched, length: number): void {
  lastMs = performance.now()
  const before = /^data (\d+)$/.exec(log.at(-1) ?? '')?.[1]
  if (before !== undefined) log.pop()
  log.push(`data ${Number(before ?? 0) + length}`)
}

function watch(number: number, socket: net.Socket): void {
  const watched: Watched = { socket, log: [] }
  sockets.set(number, watched)
  for (const event of ['connect', 'end', 'finish', 'drain', 'close'])
    socket.on(event, argument => note(watched, event === 'close' ? `close ${argument}` : event))
  socket.on('error', ({ code, syscall }: NodeJS.ErrnoException) => note(watched, `error ${code} ${syscall}`))
  socket.on('data', ({ length }) => noteData(watched, length))
  transports.add(transportOf(socket).transport)
}

function perform(watched: Watched, [what, length = 0]: Act): void {
  const { socket } = watched
  const over = (error?: Error | null): void =>
    note(watched, `${what} ${(error as NodeJS.ErrnoException | undefined)?.code ?? 'over'}`)
  if (what === 'write') note(watched, `write ${socket.write(bytes.subarray(0, length), over)}`)
  else if (what === 'string') note(watched, `write ${socket.write('x'.repeat(length), 'latin1', over)}`)
  else if (what === 'end') socket.end(bytes.subarray(0, length), over)
  else if (what === 'pause') socket.pause()
  else if (what === 'resume') socket.resume()
  else if (what === 'destroy') socket.destroy()
  else if (what === 'destroySoon') socket.destroySoon()
  else if (what === 'cork') {
    socket.cork()
    for (const text of ['ab', 'cd']) socket.write(text, over)
    socket.uncork()
  } else {
    try {
      socket.resetAndDestroy()
    } catch (error) {
      note(watched, `threw ${(error as NodeJS.ErrnoException).code}`)
    }
  }
}

/** What it has seen since it was asked last, and how it stands. */
function take({ socket, log }: Watched): readonly string[] {
  const { readyState, destroyed, readableEnded, writableFinished, bytesRead, bytesWritten } = socket
  const states = [
    readyState,
    destroyed,
    readableEnded,
    writableFinished,
    readableEnded && bytesRead,
    bytesWritten,
  ]
  return [...log.splice(0), states.join(' ')].map(line =>
    line.replace(/\d+/g, count => (Number(count) > COUNTED_MAX ? 'much' : count)),
  )
}

/** Containers have no abstract names in common. */
function path(): string {
  return areApart ? `${process.env.FASTSOCKETS_RENDEZVOUS}/${randomUUID()}` : `\0schedule-${process.pid}`
}

function listen(isOnPath: boolean, allowHalfOpen: boolean): void {
  const server = net.createServer({ allowHalfOpen }, socket => {
    socket.on('error', () => {})
    socket.on('readable', function first() {
      const number = socket.read(NUMBER_LENGTH)
      if (number === null) return
      socket.off('readable', first)
      watch(Number(number), socket)
      socket.resume()
    })
  })
  server.listen(isOnPath ? path() : { port: 0, host: HOST }, () => {
    const address = server.address()
    answer({ place: typeof address === 'string' ? { path: address } : (address as net.AddressInfo) })
  })
}

function open(place: Place, number: number, allowHalfOpen: boolean): void {
  const target = 'path' in place ? place : { port: place.port, host: HOST }
  const socket = net.connect({ ...target, allowHalfOpen })
  socket.once('connect', () => {
    watch(number, socket)
    socket.write(String(number).padEnd(NUMBER_LENGTH))
  })
}

function answer(what: Answer): void {
  process.send?.(what)
}

process.on('disconnect', () => process.exit())
process.on('message', (order: Order) => {
  if (order.listen !== undefined) listen(order.listen.isOnPath, order.listen.allowHalfOpen)
  for (const { place, number, allowHalfOpen } of order.open ?? []) open(place, number, allowHalfOpen)
  for (const { number, acts } of order.step ?? [])
    for (const act of acts) perform(sockets.get(number) as Watched, act)
  if (order.ask === 'idle') answer({ idleMs: performance.now() - lastMs, count: sockets.size })
  if (order.ask === 'seen') {
    const seen = [...sockets].map(([number, watched]) => [number, take(watched)] as const)
    answer({ seen, transports: [...transports] })
  }
})
answer({})
