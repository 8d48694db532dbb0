/** Tells what it sees in its first turns of being relinked: what keeps it alive, what its hooks hear, and how some things look. */
// Not an ES module: Node's own loader would leave something behind for the first turn.
const { createHook } = require('node:async_hooks') as typeof import('node:async_hooks')
const { closeSync } = require('node:fs') as typeof import('node:fs')
const net = require('node:net') as typeof import('node:net')
const { Worker } = require('node:worker_threads') as typeof import('node:worker_threads')

// Whether it has been opened already depends on Node's version, too.
void process.stderr
const internals = process as unknown as { _getActiveHandles(): object[] }
const resources = process.getActiveResourcesInfo()
const handleCount = internals._getActiveHandles().length

const known = new Set<number>()
const unknown: string[] = []
const types: string[] = []
const note = (what: string, id: number): void => {
  if (!known.has(id)) unknown.push(what)
}
const hook = createHook({
  init(id, type) {
    known.add(id)
    types.push(type)
  },
  before: id => note('before', id),
  destroy: id => note('destroy', id),
}).enable()

let turnCount = 0
const turns = setInterval(() => {
  ;(globalThis as { gc?: () => void }).gc?.()
  if (++turnCount < 5) return
  clearInterval(turns)
  hook.disable()
  talk()
}, 20)

/** What is written with the encoding that is none. */
function talk(): void {
  const server = net.createServer(socket => socket.resume().on('error', () => {}))
  server.listen(0, '127.0.0.1', () => {
    const socket = net.connect((server.address() as import('node:net').AddressInfo).port, '127.0.0.1', () => {
      const { code, message, name } = refusalOf(() => socket.write('text', 'buffer' as BufferEncoding))
      socket.destroy()
      server.close()
      askWorker(workerSend => {
        const told = { resources, handleCount, unknown, types, refusal: { code, message, name }, workerSend }
        process.stdout.write(`${JSON.stringify(told)}\n`, () => closeSync(1))
      })
    })
  })
}

function refusalOf(action: () => void): NodeJS.ErrnoException {
  try {
    action()
    return new Error('nothing was refused')
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
}

/** A worker that takes itself for a child with a channel. */
function askWorker(answer: (workerSend: unknown) => void): void {
  const source = `let error
    try { process.send() } catch (thrown) { error = thrown }
    require('worker_threads').parentPort.postMessage([process.send?.disabled, error?.message])`
  const env = { ...process.env, NODE_CHANNEL_FD: 'none' }
  new Worker(source, { eval: true, env }).once('message', answer)
}
