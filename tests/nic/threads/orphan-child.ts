/** A program that knows nothing of us, but for its worker, which opens an interface and ends. Reports what is left. */
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { memfdMappingCount } from '../../support/resources.ts'

if (isMainThread) {
  const worker = new Worker(fileURLToPath(import.meta.url))
  const [mapped] = await once(worker, 'message')
  await once(worker, 'exit')
  process.send?.({ mapped, mappings: memfdMappingCount() }, () => process.exit())
} else {
  const { drivers } = await import('../../../nic/index.ts')
  const offer = drivers.get('shm')?.offer()
  if (offer === undefined) throw new Error('no driver shm')
  await Promise.all([drivers.get('shm')?.connect(offer.blob), offer.accepted])
  parentPort?.postMessage(memfdMappingCount())
}
