/**
 * argv: serve | call | both, tcp | unix | http, PLACE. Notes what detectors of open handles note (jest, why-is-node-running): the
 * resources that hooks hear of, but for those that ended or keep no process alive. Tells the types at each step, and of those
 * that the program's own lines make, that its file is in the stack trace: of ten frames, or of a hundred for http, whose own calls
 * are ten.
 */
import { createHook } from 'node:async_hooks'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const [role, kind, where = ''] = process.argv.slice(2)
const SETTLED_MS = 100
// As jest sets it for its hook. why-is-node-running finds a line only within the ten frames of V8's default.
if (kind === 'http') Error.stackTraceLimit = 100
/** Requests that end by themselves, as Node makes them when it likes. */
const PASSING =
  /^(PROMISE|TickObject|Microtask|Immediate|FSREQ\w+|RANDOMBYTESREQUEST|TIMERWRAP|PIPECONNECTWRAP)$/

interface Open {
  /** With `by a line`, if a stack trace names the program's file. */
  readonly type: string
  readonly resource: WeakRef<{ hasRef?(): boolean }>
}
const open = new Map<number, Open>()

// What Node makes once belongs to no step.
void process.stdout
void process.stderr
process.send?.({ isReady: true })
createHook({
  init: (id, type, _, resource) => {
    if (PASSING.test(type)) return
    const isMade = /WRAP$/.test(type) && isNamed(String(new Error('made').stack))
    open.set(id, { type: isMade ? `${type} by a line` : type, resource: new WeakRef(resource) })
  },
  destroy: id => void open.delete(id),
}).enable()

/** Below the line of the hook itself. */
function isNamed(stack: string): boolean {
  return stack
    .split('\n')
    .slice(2)
    .some(line => line.includes('open-handles'))
}

function openTypes(): string[] {
  return [...open.values()]
    .filter(({ resource }) => {
      const found = resource.deref()
      return found !== undefined && (found.hasRef?.() ?? true)
    })
    .map(({ type }) => type)
    .sort()
}

async function step(name: string): Promise<void> {
  for (let isAsked = true; isAsked; ) {
    await sleep(SETTLED_MS)
    process.send?.({ [name]: openTypes() })
    const [message] = (await once(process, 'message')) as [{ again?: boolean }]
    isAsked = message.again === true
  }
}

const server =
  kind === 'http'
    ? http.createServer((_, response) => response.end('answer'))
    : net.createServer(socket => socket.resume())

async function listen(): Promise<string | number> {
  if (kind === 'unix') server.listen(where)
  else server.listen(0)
  await once(server, 'listening')
  return kind === 'unix' ? where : (server.address() as AddressInfo).port
}

async function call(place: string | number): Promise<void> {
  if (kind === 'http') {
    const agent = new http.Agent({ keepAlive: true })
    for (let at = 0; at < 2; at++) {
      const request = http.get({ host: '127.0.0.1', port: place, agent })
      const [response] = (await once(request, 'response')) as [http.IncomingMessage]
      await once(response.resume(), 'end')
      await sleep(1)
    }
    await step('connected')
    agent.destroy()
  } else {
    const socket = net.connect(
      kind === 'unix' ? { path: String(place) } : { port: Number(place), host: '127.0.0.1' },
    )
    await once(socket.resume(), 'connect')
    // Makes it move, if it starts on TCP and may.
    socket.write('a byte or two')
    await step('connected')
    socket.end('some bytes')
    await once(socket, 'close')
  }
  await step('closed')
}

if (role === 'call') await call(where)
else {
  const place = await listen()
  process.send?.({ place })
  await step('listening')
  if (role === 'both') await call(place)
  else await step('accepted')
  if (role !== 'both') await step('left')
  server.close()
  await step('stopped')
}
process.disconnect?.()
