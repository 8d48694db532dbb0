/** Frames of the driver tcp, as a peer writes them that has the key: heads, lengths, and how much it says that it has handled. */
import type net from 'node:net'
import { BROKEN, type Driver, drivers, type VirtualInterface } from '../../../../nic/index.ts'
import { decodeBlob } from '../../../../nic/tcp/blob-layout.ts'
import { callListener } from '../../../../nic/tcp/calling.ts'
import { frameSize, HEADER_SIZE, KIND_FRAME, KIND_SHIFT } from '../../../../nic/tcp/frame-layout.ts'
import type { TcpInterface } from '../../../../nic/tcp/tcp-interface.ts'
import type { Attack, Kind } from '../kind.ts'
import { spoil } from '../spoil.ts'

const QUEUE_SIZE = 64 * 1024
const LENGTH_MAX = 200
/** Frames to one connection, if it lives as long. */
const FRAMES_EACH = 50
const SPOILT_SHARE = 0.05

interface Connection {
  readonly end: VirtualInterface
  readonly peer: net.Socket
}

export const tcpFrames: Kind = {
  name: 'tcp-frames',
  what: 'frames of a peer over TCP, to the interface that receives them',
  reaches: ['frame', 'violation', 'lived'],
  open() {
    let delivered = 0
    const sink = { handleFrame: () => void delivered++ }
    return {
      async attack({ random, inputs, victim, count, wrong }: Attack) {
        for (let sent = 0; sent < inputs; ) {
          const { end, peer } = await connect()
          for (let i = 0; i < FRAMES_EACH && sent < inputs && end.state === 'open'; i++, sent++) {
            const good = frameOf(random.bytes(random.within(0, LENGTH_MAX)))
            const bytes = random.chance(SPOILT_SHARE) ? spoil(random, good) : good
            // As if Node had read them for the sleeping program.
            victim(() => (end as TcpInterface).handleRead(bytes, bytes.length))
            delivered = 0
            const polled = victim(() => end.poll(sink, 1))
            if (polled !== delivered && polled !== BROKEN) wrong(`poll returned ${polled} of ${delivered}`)
            count('frame', delivered)
          }
          if (end.state === 'open') count('lived')
          else if (end.failure?.code === 'ERR_NIC_PROTOCOL_VIOLATION') count('violation')
          else wrong(`the end is ${end.failure}`)
          end.close()
          peer.destroy()
        }
      },
      async honest() {
        const { end, peer } = await connect()
        ;(end as TcpInterface).handleRead(frameOf(Buffer.alloc(10)), frameSize(10))
        if (end.poll(sink, 1) !== 1) throw new Error('an honest frame is not delivered')
        end.close()
        peer.destroy()
      },
    }
  },
}

async function connect(): Promise<Connection> {
  const offer = (drivers.get('tcp') as Driver).offer({ queueSize: QUEUE_SIZE })
  const blob = decodeBlob(offer.blob)
  if (blob === undefined) throw new Error('the offer cannot be read')
  const calling = { key: undefined, checksUser: false, offer: blob }
  const peer = await callListener({ host: '127.0.0.1', port: blob.port }, calling, 5000)
  return { end: await offer.accepted, peer }
}

function frameOf(content: Buffer): Buffer {
  const bytes = Buffer.alloc(frameSize(content.length))
  bytes.writeInt32LE((KIND_FRAME << KIND_SHIFT) | content.length)
  content.copy(bytes, HEADER_SIZE)
  return bytes
}
