/**
 * Many connections between two processes. argv: server | client port. Wants --expose-gc.
 *
 * The server echoes. The client opens connections on request, stops some of them, sends a pattern through each, and
 * reports how many were answered in full; it answers `{ open }`, `{ exchange, stopped }`, `{ resume }`. Both answer `{
 * count }` with what they use.
 */
import { once } from 'node:events'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { isPatterned, patternAt } from '../../support/pattern.ts'
import { descriptorCount, residentBytes } from '../../support/resources.ts'

const PIECE_SIZE = 20_000
/** Connects under way at once. */
const CONNECTING_MAX = 256

const [role, port = '0'] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

interface Member {
  readonly socket: net.Socket
  /** Where the pattern begins for this one: bytes of a neighbour would show. */
  readonly start: number
  sent: number
  received: number
  total: number
  isRight: boolean
}

if (role === 'server') {
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as net.AddressInfo).port }))
  process.on('message', () => process.send?.(usage()))
} else {
  const members: Member[] = []
  process.on('message', async (question: { open?: number; exchange?: number; stopped?: number }) => {
    if (question.open !== undefined) process.send?.(await open(members, question.open))
    else if (question.exchange !== undefined)
      process.send?.(await exchange(members, question.exchange, question.stopped ?? 0))
    else process.send?.('count' in question ? usage() : await resume(members))
  })
  process.send?.({ isReady: true })
}

function usage(): object {
  globalThis.gc?.()
  return { descriptors: descriptorCount(), ...residentBytes() }
}

/** How many went by which wire. */
async function open(members: Member[], count: number): Promise<Record<string, number>> {
  const wires: Record<string, number> = {}
  while (members.length < count) {
    const batch = Math.min(CONNECTING_MAX, count - members.length)
    const sockets = Array.from({ length: batch }, () => net.connect(Number(port), '127.0.0.1'))
    await Promise.all(sockets.map(socket => once(socket, 'connect')))
    for (const socket of sockets) {
      const { transport } = transportOf(socket)
      wires[transport] = (wires[transport] ?? 0) + 1
      members.push(memberOf(socket, members.length))
    }
  }
  return wires
}

function memberOf(socket: net.Socket, index: number): Member {
  const member: Member = { socket, start: index * 7, sent: 0, received: 0, total: 0, isRight: true }
  socket.on('data', data => {
    if (!isPatterned(data, member.start + member.received)) member.isRight = false
    member.received += data.length
    if (isDone(member)) socket.emit('answered')
  })
  return member
}

function isDone(member: Member): boolean {
  return member.received >= member.total
}

/** Sends `bytes` more through each, and forty times as many through the first `stoppedCount`, which do not read the echo. */
async function exchange(members: Member[], bytes: number, stoppedCount: number): Promise<object> {
  const running = members.slice(stoppedCount)
  for (const member of running) member.total += bytes
  for (const member of members.slice(0, stoppedCount)) {
    member.total += 40 * bytes
    member.socket.pause()
  }
  for (const member of members) write(member)
  await Promise.all(running.filter(member => !isDone(member)).map(({ socket }) => once(socket, 'answered')))
  return report(members)
}

function write(member: Member): void {
  const { socket, start } = member
  while (member.sent < member.total) {
    const length = Math.min(PIECE_SIZE, member.total - member.sent)
    const isTaken = socket.write(patternAt(start + member.sent, length))
    member.sent += length
    if (isTaken) continue
    socket.once('drain', () => write(member))
    return
  }
}

async function resume(members: Member[]): Promise<object> {
  const stopped = members.filter(({ socket }) => socket.isPaused())
  for (const { socket } of stopped) socket.resume()
  await Promise.all(stopped.filter(member => !isDone(member)).map(({ socket }) => once(socket, 'answered')))
  return report(members)
}

function report(members: readonly Member[]): object {
  const whole = members.filter(member => isDone(member) && member.isRight)
  const halfway = members.filter(member => !isDone(member) && member.sent < member.total)
  return {
    whole: whole.length,
    halfway: halfway.length,
    wrong: members.filter(({ isRight }) => !isRight).length,
  }
}
