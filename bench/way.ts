/**
 * `npm run bench:way`: how many functions of ours one warm round trip between two processes runs through, and how many
 * calls, by V8's precise coverage. A count depends on no clock and on no load. With `--names` each function is listed
 * with its calls. Ways, all by default:
 *
 *   socket   64 bytes there and back between two relinked `net.Socket`s
 *   raw      the same between raw sockets, with `await send` and `await recv`
 *   call     `await endpoint.call(...)`, answered by a handler
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Session } from 'node:inspector/promises'
import net from 'node:net'
import { fileURLToPath } from 'node:url'
import { openEndpoint } from '../am/index.ts'
import { connect, listen } from '../fastsockets/raw/index.ts'

const ROOT = new URL('../', import.meta.url).href
const WARM_UP_TRIPS = 5000
const TRIPS = 500
/** A function that runs in fewer of the trips is not on the way. */
const SHARE_MIN = 0.5
const SIZE = 64
const ECHO = 1
const ANSWER = 2

/** Makes so many round trips. */
type Run = (trips: number) => Promise<void>

interface Kind {
  /** Starts the echo; returns what clients connect to. */
  serve(): Promise<string | number>
  open(address: string): Promise<Run>
}

const KINDS: Readonly<Record<string, Kind>> = {
  socket: {
    async serve() {
      const server = net.createServer({ noDelay: true }, socket =>
        socket.on('data', data => socket.write(data)),
      )
      await once(server.listen(0, '127.0.0.1'), 'listening')
      return (server.address() as net.AddressInfo).port
    },
    async open(address) {
      const socket = net.connect({ host: '127.0.0.1', port: Number(address), noDelay: true })
      await once(socket, 'connect')
      const bytes = Buffer.alloc(SIZE, 7)
      let left = 0
      let finish = (): void => {}
      socket.on('data', () => {
        if (--left > 0) socket.write(bytes)
        else finish()
      })
      return trips =>
        new Promise(resolve => {
          left = trips
          finish = resolve
          socket.write(bytes)
        })
    },
  },
  raw: {
    async serve() {
      const server = await listen({ host: '127.0.0.1', port: 0 })
      void server.accept().then(async socket => {
        const bytes = Buffer.alloc(SIZE)
        while ((await socket.recv(bytes)) > 0) await socket.send(bytes)
      })
      return server.address.port
    },
    async open(address) {
      const socket = await connect({ host: '127.0.0.1', port: Number(address) })
      const bytes = Buffer.alloc(SIZE, 7)
      return async trips => {
        for (let i = 0; i < trips; i++) {
          await socket.send(bytes)
          await socket.recv(bytes)
        }
      }
    },
  },
  call: {
    async serve() {
      const endpoint = await openEndpoint()
      endpoint.setHandler(ECHO, message => message.reply(ANSWER, message.word(0)))
      return endpoint.name
    },
    async open(address) {
      const endpoint = await openEndpoint()
      await endpoint.map(0, address)
      const words = [7]
      return async trips => {
        for (let i = 0; i < trips; i++) await endpoint.call(0, ECHO, undefined, words)
      }
    },
  },
}

interface Way {
  readonly functions: number
  readonly calls: number
  /** Each with its calls per round trip. */
  readonly names: readonly string[]
}

/** Counts of the functions that ran since the last call. */
async function takeWay(session: Session): Promise<Way> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const own = result.filter(({ url }) => url.startsWith(ROOT) && url !== import.meta.url)
  const counted = own
    .flatMap(({ functions }) => functions)
    .map(({ functionName, ranges }) => ({ functionName, calls: (ranges[0]?.count ?? 0) / TRIPS }))
    .filter(({ calls }) => calls >= SHARE_MIN)
  return {
    functions: counted.length,
    calls: Math.round(counted.reduce((sum, { calls }) => sum + calls, 0)),
    names: counted.map(({ functionName, calls }) => `${functionName || '(anonymous)'} ${calls.toFixed(1)}`),
  }
}

/** A side of the measured pair: answers each question of the parent with one message. */
async function runSide(kind: Kind, address: string | undefined): Promise<void> {
  const run = address === undefined ? undefined : await kind.open(address)
  const session = new Session()
  process.on('message', async question => {
    if (question === 'trips') await run?.(TRIPS)
    else if (question === 'warm-up') await run?.(WARM_UP_TRIPS)
    else if (question === 'count') {
      session.connect()
      await session.post('Profiler.enable')
      await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    }
    process.send?.(question === 'take' ? await takeWay(session) : 'done')
  })
  process.once('disconnect', () => process.exit())
  process.send?.(address === undefined ? await kind.serve() : 'ready')
}

/** `address` makes it the client. */
function start(kind: string, address?: string | number): ChildProcess {
  const args = ['side', kind, ...(address === undefined ? [] : [String(address)])]
  const register = new URL('../fastsockets/register.js', import.meta.url).href
  return fork(fileURLToPath(import.meta.url), args, { execArgv: ['--import', register] })
}

async function answerOf<T>(child: ChildProcess, question?: string): Promise<T> {
  const answer = once(child, 'message')
  if (question !== undefined) child.send(question)
  return (
    await Promise.race([answer, once(child, 'exit').then(() => Promise.reject(new Error('a side ended')))])
  )[0]
}

async function measure(kind: string): Promise<{ client: Way; server: Way }> {
  const server = start(kind)
  const client = start(kind, await answerOf<string | number>(server))
  try {
    await answerOf(client)
    await answerOf(client, 'warm-up')
    for (const side of [server, client]) await answerOf(side, 'count')
    await answerOf(client, 'trips')
    for (const side of [server, client]) await answerOf(side, 'take')
    await answerOf(client, 'trips')
    return { client: await answerOf<Way>(client, 'take'), server: await answerOf<Way>(server, 'take') }
  } finally {
    for (const side of [client, server]) if (side.connected) side.disconnect()
  }
}

async function main(args: readonly string[]): Promise<void> {
  const wanted = args.filter(arg => arg in KINDS)
  for (const kind of wanted.length > 0 ? wanted : Object.keys(KINDS)) {
    const ways = await measure(kind)
    for (const [side, { functions, calls, names }] of Object.entries(ways)) {
      console.log(`${kind}, ${side}: ${functions} functions, ${calls} calls`)
      if (args.includes('--names')) console.log(`  ${names.join('\n  ')}`)
    }
  }
}

const [role, kind = '', address] = process.argv.slice(2)
if (role === 'side') await runSide(KINDS[kind] as Kind, address)
else await main(process.argv.slice(2))
