/**
 * The receive queue: a TPACKET_V2 ring of the kernel (Documentation/networking/packet_mmap.rst), mapped here. Each slot is
 * a descriptor that is posted before its frame comes:
 *
 *   +0   STATUS  0: posted, the kernel may fill it; bit 0: it holds a frame. Both sides write it.
 *   +4   LENGTH of the frame     +8  LENGTH of what the slot holds of it     +12  u16 offset of the Ethernet header,
 *   +14  u16 offset of what follows that: a multiple of 16
 *
 * A slot does not cross the end of a block. A frame that finds no posted slot is dropped.
 */
import { ETHERNET_SIZE, frameMaxOf, HEADER_SIZE } from './frame-layout.ts'

export const STATUS_WORD = 0
export const FRAME_LENGTH_WORD = 1
export const HELD_LENGTH_WORD = 2
export const OFFSETS_WORD = 3
export const STATUS_POSTED = 0
export const STATUS_FILLED = 1

const BLOCK_SIZE = 64 * 1024
/** Of the kernel's own header, and of the address that it stores behind it; more than both have. */
const SLOT_HEADER_SIZE = 96
const SLOT_ALIGNMENT = 64
/** Fewest descriptors: half of them are credits, and half of those are acknowledged together. */
const SLOTS_MIN = 8

export interface RingShape {
  readonly slotSize: number
  readonly slotCount: number
  readonly slotsPerBlock: number
  readonly blockCount: number
  readonly blockSize: number
}

/** Twice `queueSize`, as half of the slots are credits; with at least `SLOTS_MIN` slots. */
export function ringShape(queueSize: number, mtu: number): RingShape {
  const needed = SLOT_HEADER_SIZE + ETHERNET_SIZE + HEADER_SIZE + frameMaxOf(mtu)
  const slotSize = Math.ceil(needed / SLOT_ALIGNMENT) * SLOT_ALIGNMENT
  const slotsPerBlock = Math.floor(BLOCK_SIZE / slotSize)
  const blockCount = Math.max(Math.ceil(SLOTS_MIN / slotsPerBlock), Math.floor((2 * queueSize) / BLOCK_SIZE))
  return { slotSize, slotsPerBlock, blockCount, blockSize: BLOCK_SIZE, slotCount: slotsPerBlock * blockCount }
}
