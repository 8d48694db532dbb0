/**
 * A hostile client: it disables its own runtime's use of the ring, and on request keeps the ring full.
 *
 *   argv: port, and with what: `large` frames or `small` ones for many sockets, `connects`, or `credits` that give none back
 */
import { once } from 'node:events'
import net from 'node:net'
import {
  KIND_CREDIT,
  KIND_REQUEST,
  NO_SLOT,
  RUN_COUNT_SHIFT,
  RUN_FIRST_MASK,
} from '../../../am/message-layout.ts'
import { fastOf } from '../../../fastsockets/handle/fast-handle.ts'
import {
  ACCEPT,
  CHANNEL_CREDITS,
  CLOSE,
  CLOSE_RESET,
  CONNECT,
  CONSUMED,
  DATA,
  EARLY_WINDOW,
  FLAG_PUSH,
  WINDOW,
} from '../../../fastsockets/stream/stream-layout.ts'
import type { FrameSink, VirtualInterface } from '../../../nic/index.ts'
import { drainMessages, sendMessage } from '../../support/messages.ts'

const [port = '0', mode = 'large'] = process.argv.slice(2)
const SOCKETS = 200
/** Numbers and slots that the runtime has not used. */
const NUMBER_FIRST = 1000
const SLOT_FIRST = 64
const HEADER_SIZE = 64
const ADDRESS = Buffer.from('127.0.0.1')

interface Target {
  readonly number: number
  sequence: number
  /** Up to which sequence the victim has room. */
  room: number
  readonly window: number
}

const socket = net.connect(Number(port), '127.0.0.1')
socket.on('error', () => process.exit())
await once(socket, 'connect')
const end = endOf(socket)
const poll = end.poll.bind(end)
let isOurs = false
Object.assign(end, {
  poll: (sink: FrameSink, limit: number) => (isOurs ? poll(sink, limit) : 0),
  arm: () => true,
})

const isFree = new Uint8Array(CHANNEL_CREDITS).fill(1)
let nextSlot = SLOT_FIRST
const targets: Target[] = []
let turn = 0
let number = NUMBER_FIRST
let sent = 0
// No larger than the least window that the victim gives.
const large = Math.min(end.capabilities.frameMax - HEADER_SIZE, EARLY_WINDOW)
const payload = Buffer.alloc(mode === 'large' ? large : 1, 'x')

process.send?.({ isReady: true })
await once(process, 'message')
flood()

function flood(): void {
  listen()
  if (mode === 'credits') while (sendMessage(end, { kind: KIND_CREDIT })) sent++
  else if (mode === 'connects') while (connectAndReset());
  else if (number < NUMBER_FIRST + SOCKETS) while (number < NUMBER_FIRST + SOCKETS && connect());
  else while (sendSome());
  if (sent > 0) {
    process.send?.({ sent })
    sent = Number.NEGATIVE_INFINITY
  }
  setImmediate(flood)
}

function connect(): boolean {
  const words = [number, Number(port), WINDOW, 4]
  if (!request(CONNECT, words, ADDRESS)) return false
  number++
  return true
}

function connectAndReset(): boolean {
  if (!connect()) return false
  sent++
  // If there is no room the socket stays: as good for the flood.
  sayOneWay(CLOSE, [-(number - 1), CLOSE_RESET, 0])
  return true
}

function sendSome(): boolean {
  for (let tried = 0; tried < targets.length; tried++) {
    const target = targets[turn++ % targets.length] as Target
    if (((target.room - target.sequence) | 0) < payload.length) continue
    if (!sayOneWay(DATA, [-target.number, target.sequence, 0, FLAG_PUSH], payload)) return false
    target.sequence += payload.length
    sent++
    return true
  }
  return false
}

function sayOneWay(handler: number, words: readonly number[], bytes = Buffer.alloc(0)): boolean {
  return sendMessage(end, { kind: KIND_REQUEST, handler, slot: NO_SLOT, words, payload: bytes })
}

function request(handler: number, words: readonly number[], bytes = Buffer.alloc(0)): boolean {
  const slot = nextSlot
  if (isFree[slot] === 0) return false
  if (!sendMessage(end, { kind: KIND_REQUEST, handler, slot, words, payload: bytes })) return false
  isFree[slot] = 0
  nextSlot = slot + 1 === CHANNEL_CREDITS ? 0 : slot + 1
  return true
}

/** Takes in what the victim says: slots, answers, and room. */
function listen(): void {
  isOurs = true
  for (const { kind, handler, slot, acks, words, payload: body } of drainMessages(end)) {
    free(acks)
    if (kind === KIND_CREDIT) for (let at = 0; at < body.length; at += 4) free(body.readInt32LE(at))
    const [to = 0, second = 0] = words
    if (kind !== KIND_REQUEST && slot < CHANNEL_CREDITS) isFree[slot] = 1
    if (handler === ACCEPT) targets.push({ number: to, sequence: 0, room: second, window: second })
    if (handler !== CONSUMED) continue
    const target = targets.find(one => one.number === to || one.number === -to)
    if (target !== undefined) target.room = (second + target.window) | 0
    // The victim's own slots: a request of its that is done with. One-way messages have none.
    if (slot < CHANNEL_CREDITS) sendMessage(end, { kind: KIND_CREDIT, payload: run(slot) })
  }
  isOurs = false
}

function run(slot: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32LE(slot | (1 << RUN_COUNT_SHIFT))
  return bytes
}

function free(acks: number): void {
  let slot = acks & RUN_FIRST_MASK
  for (let left = acks >>> RUN_COUNT_SHIFT; left > 0; left--) {
    isFree[slot] = 1
    slot = slot + 1 === CHANNEL_CREDITS ? 0 : slot + 1
  }
}

function endOf(fast: net.Socket): VirtualInterface {
  const { _handle } = fast as unknown as { readonly _handle: unknown }
  const found = fastOf(_handle)?.stream?.channel.channel.end
  if (found === undefined) throw new Error('this client is not fast')
  return found
}
