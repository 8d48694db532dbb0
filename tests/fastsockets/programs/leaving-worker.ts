/**
 * A worker of a cluster leaves while its query for the bootstrap is open: the primary, which is kept busy that long,
 * can answer only after the worker has gone. The primary reports how it ended. argv: how the worker leaves, execArgv of
 * the worker as JSON
 */
import cluster from 'node:cluster'
import net from 'node:net'

const BUSY_MS = 300
const [how = 'exit', workerArgv] = process.argv.slice(2)

interface ClusterMessage {
  readonly cmd?: string
  readonly act?: string
  readonly ack?: number
  readonly sockname?: object
}

const WAYS: Readonly<Record<string, () => void>> = {
  exit: () => process.exit(),
  disconnect: () => process.disconnect(),
  kill: () => process.kill(process.pid, 'SIGKILL'),
}

if (cluster.isPrimary) {
  if (workerArgv !== undefined) cluster.setupPrimary({ execArgv: JSON.parse(workerArgv) })
  const worker = cluster.fork()
  const questions: string[] = []
  const errors: string[] = []
  worker.on('error', (error: NodeJS.ErrnoException) => errors.push(String(error.code)))
  worker.process.on('internalMessage', ({ act }: ClusterMessage) => {
    if (act !== 'queryServer' || questions.push(act) > 1) return
    // The program's own question is answered by then; the worker asks again, and leaves.
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS))
  })
  worker.on('exit', () => {
    setImmediate(() => process.send?.({ questions: questions.length, errors }, () => process.exit()))
  })
} else {
  net.createServer().listen(0, '127.0.0.1')
  process.on('internalMessage', ({ sockname }: ClusterMessage) => {
    if (sockname !== undefined) setImmediate(WAYS[how] as () => void)
  })
}
