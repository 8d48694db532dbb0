/** A cluster whose primary takes up an offer of its worker, and the worker one of its primary. */
import cluster from 'node:cluster'
import { once } from 'node:events'
import { type Driver, drivers } from '../../../nic/index.ts'
import { drain, sendFrame } from '../../support/frames.ts'
import { until } from '../../support/until.ts'

interface Message {
  readonly blob?: string
  readonly heard?: string
}
const shm = drivers.get('shm') as Driver

/** Offers, hands the blob over, and hears what the peer says. */
async function offer(send: (message: Message) => void): Promise<string> {
  const { blob, accepted } = shm.offer()
  send({ blob: Buffer.from(blob).toString('base64') })
  const end = await accepted
  const [frame] = await until('a frame', () => {
    const frames = drain(end)
    return frames.length > 0 && frames
  })
  return String(frame)
}

async function connect({ blob }: Message): Promise<void> {
  sendFrame(await shm.connect(Buffer.from(blob as string, 'base64')), Buffer.from('hello'))
}

if (cluster.isPrimary) {
  const worker = cluster.fork()
  const [offered] = await once(worker, 'message')
  await connect(offered)
  const [{ heard: fromPrimary }] = await once(worker, 'message')
  const fromWorker = await offer(message => worker.send(message))
  worker.kill()
  process.send?.({ fromWorker, fromPrimary }, () => process.exit())
} else {
  const heard = await offer(message => process.send?.(message))
  process.once('message', connect)
  process.send?.({ heard } satisfies Message)
}
