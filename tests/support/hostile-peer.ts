/** The other side of a channel between endpoints: knows the rules, and keeps them as it likes. */
import {
  encodeRun,
  KIND_BOUNCE,
  KIND_CREDIT,
  KIND_GET,
  KIND_LONG,
  KIND_PART,
  KIND_REPLY,
  KIND_REQUEST,
  KIND_RETURN,
  NO_SLOT,
  RUN_COUNT_SHIFT,
  RUN_FIRST_MASK,
} from '../../am/message-layout.ts'
import { openLoopbackPair, type VirtualInterface } from '../../nic/index.ts'
import { EndpointSide, type EndpointSideOptions, withoutOneSided } from './endpoint-channels.ts'
import { patterned, sendFrame } from './frames.ts'
import { drainMessages, encodeMessage, type WireMessage } from './messages.ts'
import type { Random } from './random.ts'

/** Numbers that hurt a reader which takes them for an offset or a length. */
const ABSURD = [0, 1, -1, 7, 8, 0x7fff_ffff, -0x8000_0000, 0xfff8, 0x1_0000, 0x1000_0000] as const
const FRAME_HEADER_MAX = 56

export class HostilePeer {
  readonly end: VirtualInterface
  sent = 0
  readonly #random: Random
  readonly #credits: number
  readonly #segmentSize: number
  /** The tag that opens the other side, as its two words. */
  readonly #tag: readonly [number, number]
  readonly #freeSlots: Set<number>
  /** Requests of the other side that are not answered yet, by slot. */
  readonly #asked = new Map<number, WireMessage>()
  /** Gets of ours that are under way: their answers cannot be sent back. */
  readonly #gets = new Set<number>()
  #repliesSeen = 0

  constructor(
    end: VirtualInterface,
    random: Random,
    options: {
      readonly credits: number
      readonly segmentSize: number
      readonly tag: readonly [number, number]
    },
  ) {
    this.end = end
    this.#random = random
    this.#credits = options.credits
    this.#segmentSize = options.segmentSize
    this.#tag = options.tag
    this.#freeSlots = new Set(Array.from({ length: options.credits }, (_, slot) => slot))
  }

  /** Takes in what the other side has said. */
  listen(): void {
    for (const message of drainMessages(this.end)) {
      this.#free(message.acks)
      const { kind, slot, payload } = message
      if (kind === KIND_CREDIT) {
        for (let at = 0; at < payload.length; at += 4) this.#free(payload.readInt32LE(at))
      } else if (kind === KIND_REPLY || kind === KIND_RETURN) {
        this.#freeSlots.add(slot)
        if (!this.#gets.delete(slot) && kind === KIND_REPLY) this.#repliesSeen++
      } else if (kind === KIND_REQUEST || kind === KIND_LONG || kind === KIND_GET) {
        this.#asked.set(slot, message)
      }
    }
  }

  /** One message that breaks no rule, however little sense it makes; false if there is no room for it. */
  sayWhatIsAllowed(): boolean {
    const message = this.#allowed()
    if (message === undefined) return true
    // An acknowledgement takes effect before the part that it rides on.
    const mayRide = message.kind !== KIND_PART && this.#random.chance(0.3)
    return this.#put(encodeMessage({ ...message, acks: mayRide ? this.#takeRun() : 0 }))
  }

  /** One frame of which something is wrong, likely or surely; false if there is no room for it. */
  sayAnything(): boolean {
    const random = this.#random
    if (random.chance(0.1)) return this.#put(random.bytes(random.within(0, 100)))
    const message = this.#allowed() ?? {}
    const twist = random.within(0, 6)
    if (twist === 0) return this.#put(encodeMessage({ ...message, slot: this.#anySlot() }))
    if (twist === 1) return this.#put(encodeMessage({ ...message, kind: random.within(0, 7) }))
    if (twist === 2) return this.#put(encodeMessage({ ...message, acks: random.word() }))
    if (twist === 3) {
      const run = encodeRun(this.#anySlot(), random.within(0, this.#credits))
      return this.#put(encodeMessage({ ...message, acks: run }))
    }
    if (twist === 4) return this.#put(encodeMessage({ ...message, region: this.#anyRegion() }))
    const frame = encodeMessage(message)
    if (twist === 5) return this.#put(frame.subarray(0, random.within(0, frame.length)))
    for (let i = random.within(1, 4); i > 0; i--) {
      frame[random.within(0, Math.min(frame.length - 1, FRAME_HEADER_MAX))] = random.word()
    }
    // The same once more: replies and parts come twice.
    return this.#put(frame) && (random.chance(0.5) || this.#put(frame))
  }

  #put(frame: Uint8Array): boolean {
    if (sendFrame(this.end, frame.subarray(0, this.end.capabilities.frameMax)) !== 0) return false
    this.sent++
    return true
  }

  #allowed(): Partial<WireMessage> | undefined {
    const random = this.#random
    const handler = random.within(0, 255)
    const words = Array.from({ length: random.within(0, 8) }, () => random.word() | 0)
    const tag = this.#someTag()
    const kind = random.within(0, 7)
    if (kind === KIND_REQUEST || kind === KIND_LONG || kind === KIND_GET) {
      const [slot] = this.#freeSlots
      if (slot === undefined) return undefined
      this.#freeSlots.delete(slot)
      if (kind === KIND_GET) this.#gets.add(slot)
      if (kind === KIND_REQUEST) return { kind, handler, slot, tag, words, payload: this.#somePayload() }
      return { kind, handler, slot, tag, words, ...this.#someRegion(kind === KIND_LONG) }
    }
    if (kind === KIND_CREDIT) return { kind, payload: this.#runs() }
    if (kind === KIND_BOUNCE) {
      if (this.#repliesSeen === 0) return undefined
      this.#repliesSeen--
      return { kind, handler, slot: random.within(1, 7), words, payload: this.#somePayload() }
    }
    const asked = [...this.#asked.keys()]
    const slot = asked[random.within(0, asked.length - 1)]
    if (kind === KIND_PART && (slot === undefined || random.chance(0.5))) {
      return { kind, slot: NO_SLOT, tag, ...this.#someRegion(true) }
    }
    if (slot === undefined) return undefined
    const request = this.#asked.get(slot) as WireMessage
    if (kind === KIND_PART) return { kind, slot, ...this.#partOf(request) }
    this.#asked.delete(slot)
    if (kind === KIND_RETURN) return { kind, slot, handler: random.within(1, 7) }
    if (request.kind === KIND_GET || random.chance(0.5)) {
      return { kind: KIND_REPLY, slot, handler, words, payload: this.#somePayload() }
    }
    return { kind: KIND_REPLY, slot, handler, words, ...this.#someRegion(true) }
  }

  /** A part for that request: anywhere, unless it is a get, which has bounds. */
  #partOf(request: WireMessage): Pick<WireMessage, 'region' | 'payload'> {
    if (request.kind !== KIND_GET) return this.#someRegion(true)
    const random = this.#random
    const size = request.region?.[1] as number
    const offset = random.within(0, size)
    const payload = random.bytes(random.within(0, Math.min(size - offset, 4000)))
    return { region: [offset, payload.length], payload }
  }

  /** A region that may lie anywhere, and its bytes if there are any. */
  #someRegion(hasBytes: boolean): Pick<WireMessage, 'region' | 'payload'> {
    const random = this.#random
    const payload = hasBytes && random.chance(0.7) ? this.#somePayload() : Buffer.alloc(0)
    const [offset, length] = this.#anyRegion()
    return { region: [offset, payload.length > 0 ? payload.length : length], payload }
  }

  #anyRegion(): readonly [number, number] {
    const random = this.#random
    const near = this.#segmentSize + random.within(-9, 9)
    const offset = random.chance(0.5) ? random.within(0, this.#segmentSize) : random.pick([near, ...ABSURD])
    const length = random.chance(0.5) ? random.within(0, this.#segmentSize) : random.pick([near, ...ABSURD])
    return [offset, length]
  }

  #somePayload(): Buffer {
    const random = this.#random
    const most = this.end.capabilities.frameMax - FRAME_HEADER_MAX
    return random.bytes(random.chance(0.8) ? random.within(0, 100) : random.within(0, most))
  }

  #someTag(): readonly [number, number] | undefined {
    if (this.#random.chance(0.8)) return this.#tag
    return this.#random.pick([undefined, [0, 0], [this.#tag[1], this.#tag[0]], [1, 0]])
  }

  #anySlot(): number {
    const random = this.#random
    return random.pick([
      random.within(0, this.#credits - 1),
      random.within(0, this.#credits - 1),
      this.#credits,
      0x7fff,
      NO_SLOT,
    ])
  }

  /** Slots of the other side that may be acknowledged, as a run; 0 if there are none. */
  #takeRun(): number {
    const first = [...this.#asked.keys()].find(slot => this.#mayAcknowledge(slot))
    if (first === undefined) return 0
    let count = 0
    while (this.#mayAcknowledge((first + count) % this.#credits)) {
      this.#asked.delete((first + count) % this.#credits)
      count++
    }
    return encodeRun(first, count)
  }

  /** A get is answered. */
  #mayAcknowledge(slot: number): boolean {
    const request = this.#asked.get(slot)
    return request !== undefined && request.kind !== KIND_GET
  }

  #runs(): Buffer {
    const runs = Buffer.alloc(4 * this.#random.within(0, 64))
    for (let at = 0; at < runs.length; at += 4) {
      if (this.#random.chance(0.1)) runs.writeInt32LE(this.#takeRun(), at)
    }
    return runs
  }

  #free(run: number): void {
    const first = run & RUN_FIRST_MASK
    for (let i = run >>> RUN_COUNT_SHIFT; i > 0; i--) this.#freeSlots.add((first + i - 1) % this.#credits)
  }
}

/** Bytes of a victim's segment. */
export const SEGMENT = 1000

/** A victim without one-sided access, and the bare wire to it. */
export function openVictim(options: EndpointSideOptions = {}): {
  wire: VirtualInterface
  victim: EndpointSide
} {
  const [wire, far] = openLoopbackPair()
  const victim = new EndpointSide(withoutOneSided(far), { segment: SEGMENT, ...options })
  victim.segment.set(patterned(SEGMENT, 1))
  return { wire, victim }
}
