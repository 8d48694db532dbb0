/**
 * Unmodified packages that speak UDP, as programs of two sides: server and client. Each side notes what it has seen; plain, relinked and
 * mixed pairs must see the same. The packages are not ours to type: the programs are plain JavaScript, written beside `node_modules`.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { FallbackCode } from '../../fastsockets/reasons.ts'
import { readStatusOf } from '../../fastsockets/status/read-status.ts'
import { plainEnvironment } from '../support/child.ts'
import { REGISTER } from '../support/relinked.ts'
import { eventually, withWatchdog } from '../support/until.ts'

interface Program {
  readonly version: string
  /** Must say { port }. */
  readonly server: string
  readonly client: string
  /** What the server sees; -1 if that differs from run to run, by timers of the package. */
  readonly served: number
  /** The pair leaves the kernel: the client keeps one socket for many datagrams, and the server's may not share its port. */
  readonly isFast: boolean
  /** Why the kernel keeps all its UDP sockets. */
  readonly reason?: FallbackCode
}

const COUNT = 200
const PAUSE_MS = 500
/** On a busy machine the way may not be found in that time. */
const TRIES_MAX = 5

const PRELUDE = `import dgram from 'node:dgram'
import { once } from 'node:events'
import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)
const [role, place] = process.argv.slice(2)
const port = Number(place)
const seen = []
process.on('message', () => process.send({ seen }))
process.on('disconnect', () => process.exit())
// The first half finds the way past the kernel, the second one takes it.
const rest = async i => i === ${COUNT / 2} && (await new Promise(done => setTimeout(done, ${PAUSE_MS})))
const sink = async note => {
  const socket = dgram.createSocket('udp4')
  socket.on('message', bytes => seen.push(note(bytes.toString())))
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  process.send({ port: socket.address().port })
}
`

export const PACKAGES: Readonly<Record<string, Program>> = {
  dns2: {
    version: '2.1.0',
    served: 40,
    isFast: false,
    server: `const { createServer, Packet } = require('dns2')
      const server = createServer({ udp: true, handle: (request, send) => {
        const answer = Packet.createResponseFromRequest(request)
        const [{ name }] = request.questions
        seen.push(name)
        answer.answers.push({ name, type: Packet.TYPE.A, class: Packet.CLASS.IN, ttl: 300, address: '10.1.2.3' })
        send(answer)
      } })
      const listening = once(server, 'listening')
      server.listen({ udp: { port: 0, address: '127.0.0.1' } })
      await listening
      process.send({ port: server.addresses().udp.port })`,
    client: `const DNS = require('dns2')
      const dns = new DNS({ nameServers: ['127.0.0.1'], port, recursive: true })
      for (let i = 0; i < 40; i++) seen.push((await dns.resolveA('name-' + i + '.example')).answers)`,
  },
  'node-osc': {
    version: '11.7.1',
    served: COUNT,
    isFast: false,
    server: `const { Server } = require('node-osc')
      const server = new Server(0, '127.0.0.1')
      server.on('message', message => seen.push(message))
      await once(server, 'listening')
      process.send({ port: server.port || server._sock.address().port })`,
    client: `const { Client } = require('node-osc')
      const client = new Client('127.0.0.1', port)
      for (let i = 0; i < ${COUNT}; i++) {
        await rest(i)
        await client.send(['/volume', i, i / 2, 'text'])
      }`,
  },
  'syslog-client': {
    version: '1.1.1',
    served: COUNT,
    isFast: true,
    server: "await sink(text => text.replace(/^(<[0-9]+>).*(message [0-9]+)[^]*/, '$1 $2'))",
    client: `const syslog = require('syslog-client')
      const client = syslog.createClient('127.0.0.1', { port, transport: syslog.Transport.Udp })
      for (let i = 0; i < ${COUNT}; i++) (await rest(i), await new Promise((done, fail) =>
        client.log('message ' + i, { severity: i % 8 }, error => (error ? fail(error) : done()))))`,
  },
  'hot-shots': {
    version: '17.1.1',
    served: COUNT,
    isFast: true,
    server: 'await sink(text => text)',
    client: `const StatsD = require('hot-shots')
      const client = new StatsD({ host: '127.0.0.1', port })
      for (let i = 0; i < ${COUNT}; i++) (await rest(i), await new Promise((done, fail) =>
        client.gauge('a.gauge', i, { tag: 'x' + (i % 3) }, error => (error ? fail(error) : done()))))`,
  },
  coap: {
    version: '1.5.0',
    served: COUNT,
    isFast: false,
    server: `const coap = require('coap')
      const server = coap.createServer({ reuseAddr: false }, (request, response) => {
        seen.push(request.method + ' ' + request.url + ' ' + request.payload)
        response.end('seen ' + request.url)
      })
      await new Promise(done => server.listen(0, '127.0.0.1', done))
      process.send({ port: server._sock.address().port })`,
    client: `const coap = require('coap')
      const agent = new coap.Agent({ type: 'udp4' })
      for (let i = 0; i < ${COUNT}; i++) {
        await rest(i)
        const request = coap.request({ host: '127.0.0.1', port, method: 'PUT', pathname: '/' + i, agent })
        request.end('payload ' + i)
        const [response] = await once(request, 'response')
        seen.push(response.code + ' ' + response.payload)
      }`,
  },
  'bittorrent-dht': {
    version: '11.0.12',
    served: -1,
    isFast: false,
    server: `const { default: DHT } = await import('bittorrent-dht')
      const dht = new DHT({ bootstrap: false })
      dht.listen(0, '127.0.0.1', () => process.send({ port: dht.address().port }))`,
    client: `const { default: DHT } = await import('bittorrent-dht')
      const dht = new DHT({ bootstrap: ['127.0.0.1:' + port] })
      await once(dht, 'ready')
      const call = (name, ...args) => new Promise((done, fail) =>
        dht[name](...args, (error, result) => (error ? fail(error) : done(result))))
      for (let i = 0; i < 30; i++) {
        const hash = await call('put', { v: Buffer.from('value ' + i) })
        seen.push((await call('get', hash)).v.toString())
      }`,
  },
  // ICE, DTLS and SRTP of WebRTC; offer and answer go over TCP.
  werift: {
    version: '0.25.2',
    served: COUNT,
    isFast: true,
    server: `const { RTCPeerConnection } = require('werift')
      const { createServer } = await import('node:net')
      const server = createServer(async socket => {
        const pc = new RTCPeerConnection({ iceServers: [] })
        pc.onTrack.subscribe(track => track.onReceiveRtp.subscribe(({ payload }) => seen.push(payload.toString())))
        const [offer] = await once(socket, 'data')
        await pc.setRemoteDescription(JSON.parse(offer))
        await pc.setLocalDescription(await pc.createAnswer())
        socket.end(JSON.stringify(pc.localDescription))
      })
      server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))`,
    client: `const { RTCPeerConnection, MediaStreamTrack, RtpPacket, RtpHeader } = require('werift')
      const { connect } = await import('node:net')
      const { text } = await import('node:stream/consumers')
      const pc = new RTCPeerConnection({ iceServers: [] })
      const track = new MediaStreamTrack({ kind: 'video' })
      pc.addTransceiver(track, { direction: 'sendonly' })
      await pc.setLocalDescription(await pc.createOffer())
      const socket = connect(port, '127.0.0.1')
      socket.write(JSON.stringify(pc.localDescription))
      await pc.setRemoteDescription(JSON.parse(await text(socket)))
      await pc.connectionStateChange.watch(state => state === 'connected')
      for (let i = 0; i < ${COUNT}; i++) {
        await rest(i)
        track.writeRtp(new RtpPacket(new RtpHeader({ sequenceNumber: i, timestamp: 90 * i }), Buffer.from('packet ' + i)))
        await new Promise(done => setImmediate(done))
      }`,
  },
  // Multicast.
  dnssd: {
    version: '0.4.1',
    served: -1,
    isFast: false,
    reason: 'SHARED_PORT',
    server: `const { Advertisement, tcp } = require('dnssd')
      const service = new Advertisement(tcp('fastsockets'), 4321, { name: 'service ' + process.pid, txt: { key: 'value' } })
      service.start()
      await once(service, 'active')
      process.send({ port: process.pid })`,
    client: `const { Browser, tcp } = require('dnssd')
      const browser = new Browser(tcp('fastsockets'))
      await new Promise(done => browser.on('serviceUp', ({ name, port: at, txt }) => {
        if (name !== 'service ' + port) return
        seen.push(at + ' ' + txt.key)
        done()
      }).start())`,
  },
}

export const MODES = ['plain', 'relinked'] as const
type Mode = (typeof MODES)[number]

interface Seen {
  readonly client: readonly unknown[]
  readonly server: readonly unknown[]
  /** Datagrams of the client that did not take the kernel's road. */
  readonly fastCount: number
  /** Why the kernel keeps the client's UDP sockets, each reason once. */
  readonly reasons: readonly (string | undefined)[]
}

/** What is wrong with a package, of all four pairs; nothing, it is hoped. `folder` has it in its `node_modules`. */
export async function faultsOf(name: string, folder: string): Promise<string[]> {
  const { isFast, reason } = PACKAGES[name] as Program
  const faults: string[] = []
  let plain: Seen | undefined
  for (const server of MODES)
    for (const client of MODES) {
      const mayBeFast = isFast && server === 'relinked' && client === 'relinked'
      let seen = await dialogue(name, folder, server, client)
      for (let tries = 1; mayBeFast && seen.fastCount === 0 && tries < TRIES_MAX; tries++)
        seen = await dialogue(name, folder, server, client)
      plain ??= seen
      const pair = `${name}: ${client} client, ${server} server`
      for (const side of ['client', 'server'] as const)
        if (!isDeepStrictEqual(seen[side], plain[side]))
          faults.push(`${pair}: the ${side} saw ${JSON.stringify(seen[side]).slice(0, 500)}`)
      if (isFast && mayBeFast !== seen.fastCount > 0)
        faults.push(`${pair}: ${seen.fastCount} past the kernel`)
      if (reason !== undefined && client === 'relinked' && !isDeepStrictEqual(seen.reasons, [reason]))
        faults.push(`${pair}: the client's sockets are with the kernel for ${JSON.stringify(seen.reasons)}`)
    }
  return faults
}

async function dialogue(name: string, folder: string, serving: Mode, calling: Mode): Promise<Seen> {
  const { server, client, served } = PACKAGES[name] as Program
  const path = join(folder, `${name}.mjs`)
  writeFileSync(
    path,
    `${PRELUDE}if (role === 'server') {\n${server}\n} else {\n${client}\nprocess.send({ done: true })\n}\n`,
  )
  const children: ChildProcess[] = []
  const start = (mode: Mode, ...args: string[]): ChildProcess => {
    const execArgv = mode === 'plain' ? [] : ['--import', REGISTER.href]
    const env = { ...plainEnvironment(), FASTSOCKETS_START: 'fast' }
    const child = fork(path, args, { cwd: folder, execArgv, env })
    children.push(child)
    return child
  }
  try {
    const serverChild = start(serving, 'server')
    const { port } = await hear<{ port: number }>(serverChild)
    const clientChild = start(calling, 'client', String(port))
    await hear(clientChild)
    const atServer = await eventually(`${name}: what was sent to arrive`, async () => {
      const { seen } = await ask(serverChild)
      return (served < 0 || seen.length === served) && seen
    })
    const { datagramsOut: fastCount = 0, sockets = [] } = readStatusOf(clientChild.pid as number)[0] ?? {}
    const reasons = [...new Set(sockets.filter(({ kind }) => kind === 'udp').map(({ reason }) => reason))]
    return { client: (await ask(clientChild)).seen, server: served < 0 ? [] : atServer, fastCount, reasons }
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
}

async function ask(child: ChildProcess): Promise<{ seen: unknown[] }> {
  child.send({})
  return await hear(child)
}

async function hear<T>(child: ChildProcess): Promise<T> {
  const ended = once(child, 'exit').then(() => {
    throw new Error('a program has ended')
  })
  const [message] = await withWatchdog('a program', Promise.race([once(child, 'message'), ended]))
  return message as T
}
