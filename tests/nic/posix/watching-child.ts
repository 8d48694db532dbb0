/** Stops workers while the kernel rings the handle that watches a descriptor for them. */
import { once } from 'node:events'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { requireLibc } from '../../../nic/posix/libc.ts'
import { socketPair } from '../../../nic/posix/socket-pair.ts'

const WORKERS = 20
/** The descriptor stays readable, so the worker is nearly always in the call of its listener when it is stopped. */
const RING_MS = 0.2

if (isMainThread) {
  for (let i = 0; i < WORKERS; i++) {
    const worker = new Worker(new URL(import.meta.url))
    await once(worker, 'message')
    await worker.terminate()
  }
  process.send?.({ stopped: WORKERS }, () => process.exit())
} else {
  const libc = requireLibc()
  const { near, far } = socketPair()
  libc.send(far, Buffer.from('readable'), 8, 0)
  let rings = 0
  const handle = libc.watch(near, () => {
    // Keeps the handle from the collector, which would close it.
    handle.ref()
    if (++rings === 3) parentPort?.postMessage('rung')
    const untilMs = performance.now() + RING_MS
    while (performance.now() < untilMs);
  })
  handle.ref()
}
