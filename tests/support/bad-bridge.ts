/**
 * A bridge of two devices that loses, doubles and delays frames, in user space: two AF_PACKET sockets (packet(7)). Once it
 * is told to; before that it forwards all.
 *
 *   argv: near port, far port, seed
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  AF_PACKET,
  MSG_DONTWAIT,
  POLLIN,
  SOCK_NONBLOCK,
  SOCK_RAW,
  SOL_PACKET,
} from '../../nic/posix/constants.ts'
import { type Libc, requireLibc, systemError } from '../../nic/posix/libc.ts'
import { Random } from './random.ts'

export type Question = { readonly ask: 'misbehave' } | { readonly ask: 'counts' }

export interface Counts {
  readonly forwarded: number
  readonly lost: number
  readonly doubled: number
  readonly delayed: number
}

const ETH_P_ALL = 3
/** With each frame comes a header that says what the devices leave to hardware: checksums, segments. */
const PACKET_VNET_HDR = 15
const PACKET_IGNORE_OUTGOING = 23
const SOL_SOCKET = 1
const SO_RCVBUF = 8
const RECEIVE_BUFFER = 4 << 20
const FRAME_MAX = 70_000
const ONE_IN = 100
/** A delayed frame goes behind so many later ones of its direction. */
const BEHIND = 4
const POLL_MS = 5
const FRAMES_A_TURN = 64

const [nearPort = '', farPort = '', seed = '1'] = process.argv.slice(2)
const libc = requireLibc()
const random = new Random(Number(seed))
const counts = { forwarded: 0, lost: 0, doubled: 0, delayed: 0 }
const buffer = Buffer.alloc(FRAME_MAX)
let isBad = false

class Direction {
  readonly #libc: Libc
  readonly from: number
  readonly #to: number
  #held: Buffer | undefined
  #heldFor = 0

  constructor(libc: Libc, from: number, to: number) {
    this.#libc = libc
    this.from = from
    this.#to = to
  }

  forward(): void {
    for (let count = 0; count < FRAMES_A_TURN; count++) {
      const length = this.#libc.recv(this.from, buffer, buffer.length, MSG_DONTWAIT)
      if (length < 0) return
      this.#pass(buffer.subarray(0, length))
    }
  }

  #pass(frame: Buffer): void {
    if (isBad && random.within(1, ONE_IN) === 1) {
      counts.lost++
      return
    }
    if (isBad && this.#held === undefined && random.within(1, ONE_IN) === 1) {
      counts.delayed++
      this.#held = Buffer.from(frame)
      this.#heldFor = BEHIND
      return
    }
    this.#send(frame)
    if (isBad && random.within(1, ONE_IN) === 1) {
      counts.doubled++
      this.#send(frame)
    }
    if (this.#held === undefined || --this.#heldFor > 0) return
    this.#send(this.#held)
    this.#held = undefined
  }

  #send(frame: Buffer): void {
    counts.forwarded++
    this.#libc.send(this.#to, frame, frame.length, 0)
  }
}

function openPort(name: string): number {
  const fd = libc.socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0)
  const set = (level: number, option: number, setting: number): void => {
    const value = Buffer.alloc(4)
    value.writeInt32LE(setting)
    if (libc.setsockopt(fd, level, option, value, 4) < 0) throw systemError(libc, `setsockopt ${option}`)
  }
  set(SOL_PACKET, PACKET_VNET_HDR, 1)
  set(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
  set(SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER)
  const request = Buffer.alloc(40)
  request.write(name)
  const SIOCGIFINDEX = 0x8933
  if (libc.ioctl(fd, SIOCGIFINDEX, request) < 0) throw systemError(libc, 'ioctl')
  const address = Buffer.alloc(20)
  address.writeUInt16LE(AF_PACKET, 0)
  address.writeUInt16BE(ETH_P_ALL, 2)
  address.writeInt32LE(request.readInt32LE(16), 4)
  if (libc.bind(fd, address, address.length) < 0) throw systemError(libc, 'bind')
  return fd
}

const [near, far] = [openPort(nearPort), openPort(farPort)]
const directions = [new Direction(libc, near, far), new Direction(libc, far, near)]
const polled = Buffer.alloc(16)
for (const [at, fd] of [near, far].entries()) {
  polled.writeInt32LE(fd, 8 * at)
  polled.writeInt16LE(POLLIN, 8 * at + 4)
}
process.on('message', ({ ask }: Question) => {
  if (ask === 'misbehave') isBad = true
  process.send?.(counts)
})
process.on('disconnect', () => process.exit())
process.send?.(counts)
for (;;) {
  if (libc.poll(polled, 2, POLL_MS) > 0) for (const direction of directions) direction.forward()
  await nextTurn()
}
