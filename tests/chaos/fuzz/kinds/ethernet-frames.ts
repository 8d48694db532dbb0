/** Frames of a stranger on the segment, who knows the ID of the interface and not its key. At the loopback device. */
import { decodeAddress, OFFER_MAGIC } from '../../../../nic/ethernet/address-layout.ts'
import { deviceFor } from '../../../../nic/ethernet/device.ts'
import type { EthernetInterface } from '../../../../nic/ethernet/ethernet-interface.ts'
import {
  AT_ETHERTYPE,
  ETHERNET_SIZE,
  ETHERTYPE,
  HEADER_SIZE,
  ID_SIZE,
  KIND_ANSWER,
  KIND_FRAME,
  KIND_HELLO,
  KIND_WORD,
  LENGTH_WORD,
} from '../../../../nic/ethernet/frame-layout.ts'
import { openPacketSocket } from '../../../../nic/ethernet/open-socket.ts'
import { PacketSocket } from '../../../../nic/ethernet/packet-socket.ts'
import { type Driver, drivers } from '../../../../nic/index.ts'
import { requireLibc } from '../../../../nic/posix/libc.ts'
import type { Attack, Kind } from '../kind.ts'
import { spoil } from '../spoil.ts'

const QUEUE_SIZE = 64 * 1024
const CONTENT_MAX = 200
const KINDS = [KIND_FRAME, KIND_HELLO, KIND_ANSWER] as const
/** Forged frames between two of the peer. */
const FORGED_EACH = 5

export const ethernetFrames: Kind = {
  name: 'ethernet-frames',
  what: 'frames of a stranger on an Ethernet segment, to the interface that receives them',
  reaches: ['forged', 'of the peer'],
  absence() {
    const availability = (drivers.get('ethernet') as Driver).availability()
    return availability.usable ? undefined : availability.reason
  },
  async open() {
    const libc = requireLibc()
    const driver = drivers.get('ethernet') as Driver
    const offer = driver.offer({ queueSize: QUEUE_SIZE })
    const reply = (bytes: Uint8Array): void => offer.answer?.(bytes)
    const [near, far] = (await Promise.all([driver.connect(offer.blob, { reply }), offer.accepted])) as [
      EthernetInterface,
      EthernetInterface,
    ]
    const id = decodeAddress(OFFER_MAGIC, offer.blob)?.id as Buffer
    const fd = openPacketSocket(libc, Buffer.alloc(ID_SIZE, 1))
    const stranger = new PacketSocket(libc, fd, deviceFor(libc, fd, undefined), QUEUE_SIZE)
    let delivered = 0
    const sink = { handleFrame: () => void delivered++ }
    /** Until `far` has handled everything that has been sent. */
    const exchange = (): void => {
      delivered = 0
      const at = near.reserve(8)
      near.sendBytes.fill(1, at, at + 8)
      near.commit(8)
      for (let polls = 0; polls < 1000 && delivered === 0; polls++) far.poll(sink, 8)
    }
    return {
      attack({ random, inputs, victim, count, wrong }: Attack) {
        for (let sent = 0; sent < inputs; ) {
          const before = far.refused + far.replayed
          for (let i = 0; i < FORGED_EACH && sent < inputs; i++, sent++) {
            const content = random.bytes(random.within(0, CONTENT_MAX))
            const good = Buffer.concat([random.bytes(HEADER_SIZE), content])
            good.writeUInt32LE(content.length, 4 * LENGTH_WORD)
            good.writeUInt32LE(random.pick(KINDS), 4 * KIND_WORD)
            const frame = Buffer.concat([
              Buffer.alloc(ETHERNET_SIZE),
              id,
              spoil(random, good).subarray(ID_SIZE),
            ])
            frame.writeUInt16BE(ETHERTYPE, AT_ETHERTYPE)
            libc.send(fd, frame, frame.length, 0)
          }
          victim(exchange)
          count('forged', far.refused + far.replayed - before)
          count('of the peer', delivered)
          if (delivered !== 1 || far.state !== 'open') wrong(`${delivered} frames; ${far.failure}`)
        }
      },
      honest() {
        exchange()
        if (delivered !== 1) throw new Error(`${delivered} frames of the peer`)
      },
      close() {
        for (const end of [near, far, stranger]) end.close()
      },
    }
  },
}
