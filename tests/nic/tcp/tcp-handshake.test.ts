/** Callers of the driver tcp: those that know the key, and those that pretend to. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { callTcpAddress, openTcpPort } from '../../../nic/index.ts'
import {
  AT_CHALLENGE_STATUS,
  AT_WELCOME_PROOF,
  CHALLENGE_SIZE,
  HELLO_SIZE,
  MAGIC,
  PROOF_SIZE,
  PURPOSE_CONTROL,
  REFUSED_HAS_NO_KEY,
  REFUSED_NEEDS_KEY,
  REFUSED_PROOF,
  REFUSED_USER,
  WELCOME_SIZE,
} from '../../../nic/tcp/handshake-layout.ts'
import { NOBODY } from '../../support/other-user.ts'
import { skipHere } from '../../support/skip.ts'
import { keyFileOf } from '../../support/two-hosts.ts'
import { eventually, withWatchdog } from '../../support/until.ts'

const HOST = '127.0.0.1'
const KEY = Buffer.from('0123456789abcdefghijklmnopqrstuvwxyz')
/** CALLERS_OF_ONE_MAX of tcp-listener.ts. */
const CALLERS_MAX = 256
const TIMEOUT_MS = 5000

function useKey(t: Test, key: Buffer | undefined): void {
  const { FASTSOCKETS_KEY_FILE: before } = process.env
  t.teardown(() => {
    if (before === undefined) delete process.env.FASTSOCKETS_KEY_FILE
    else process.env.FASTSOCKETS_KEY_FILE = before
  })
  if (key === undefined) delete process.env.FASTSOCKETS_KEY_FILE
  else process.env.FASTSOCKETS_KEY_FILE = keyFileOf(t, key)
}

/** Listens with the key in force; counts accepted callers. */
async function listen(t: Test): Promise<{ port: number; admitted: net.Socket[] }> {
  const admitted: net.Socket[] = []
  const port = await openTcpPort({ host: HOST, port: 0 }, socket => admitted.push(socket))
  t.teardown(() => {
    port.close()
    for (const socket of admitted) socket.destroy()
  })
  return { port: port.address?.port as number, admitted }
}

function hello(hasKey: boolean): Buffer {
  const bytes = Buffer.alloc(HELLO_SIZE, 7)
  MAGIC.copy(bytes)
  bytes[8] = PURPOSE_CONTROL
  bytes[9] = hasKey ? 1 : 0
  return bytes
}

async function connect(t: Test, port: number): Promise<net.Socket> {
  const socket = net.connect({ host: HOST, port })
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await withWatchdog('the connection', once(socket, 'connect'))
  return socket
}

/** All that comes until the other side hangs up. */
async function hear(socket: net.Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  socket.on('data', chunk => chunks.push(chunk))
  await withWatchdog('the end', once(socket, 'close'))
  return Buffer.concat(chunks)
}

async function take(socket: net.Socket, length: number): Promise<Buffer> {
  for (;;) {
    const bytes = socket.read(length) as Buffer | null
    if (bytes !== null) return bytes
    await withWatchdog('bytes', once(socket, 'readable'))
  }
}

/** Passes bytes on, and keeps them. */
async function openRelay(t: Test, port: number): Promise<{ port: number; said: Buffer[]; heard: Buffer[] }> {
  const said: Buffer[] = []
  const heard: Buffer[] = []
  const server = net.createServer(near => {
    const far = net.connect({ host: HOST, port })
    near.on('data', bytes => {
      said.push(bytes)
      far.write(bytes)
    })
    far.on('data', bytes => {
      heard.push(bytes)
      near.write(bytes)
    })
    for (const [one, other] of [[near, far] as const, [far, near] as const]) {
      one.on('close', () => other.destroy())
      one.on('error', () => {})
    }
  })
  server.listen(0, HOST)
  await once(server, 'listening')
  t.teardown(() => void server.close())
  return { port: (server.address() as net.AddressInfo).port, said, heard }
}

t.test('the key does not cross the network, and what did is of no use to a later caller', async t => {
  useKey(t, KEY)
  const { port, admitted } = await listen(t)
  const relay = await openRelay(t, port)
  const friend = await callTcpAddress({ host: HOST, port: relay.port }, TIMEOUT_MS)
  await eventually('the friend', () => admitted.length === 1)
  friend.destroy()
  const said = Buffer.concat(relay.said)
  t.equal(said.length, HELLO_SIZE + PROOF_SIZE)
  for (const bytes of [said, Buffer.concat(relay.heard)]) t.notOk(bytes.includes(KEY.subarray(0, 8)))

  const replay = await connect(t, port)
  replay.write(said.subarray(0, HELLO_SIZE))
  const challenge = await take(replay, CHALLENGE_SIZE)
  t.notOk(challenge.equals(Buffer.concat(relay.heard).subarray(0, CHALLENGE_SIZE)), 'a fresh nonce')
  replay.write(said.subarray(HELLO_SIZE))
  t.equal((await take(replay, WELCOME_SIZE))[0], REFUSED_PROOF)
  await hear(replay)
  t.equal(admitted.length, 1)
})

t.test('a listener that does not know the key is found out, even if it reflects the proof', async t => {
  useKey(t, KEY)
  const server = net.createServer(async socket => {
    socket.on('error', () => {})
    await take(socket, HELLO_SIZE)
    const challenge = Buffer.alloc(CHALLENGE_SIZE, 9)
    MAGIC.copy(challenge)
    challenge[AT_CHALLENGE_STATUS] = 0
    challenge[9] = 1
    socket.write(challenge)
    const proof = await take(socket, PROOF_SIZE)
    const welcome = Buffer.alloc(WELCOME_SIZE)
    proof.copy(welcome, AT_WELCOME_PROOF)
    socket.write(welcome)
  })
  server.listen(0, HOST)
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const { port } = server.address() as net.AddressInfo
  await t.rejects(callTcpAddress({ host: HOST, port }, TIMEOUT_MS), {
    code: 'ERR_NIC_PEER_REFUSED',
    message: /does not know the key/,
  })
})

t.test('strangers are hung up on, and honest callers are served all the while', async t => {
  useKey(t, KEY)
  const { port, admitted } = await listen(t)
  const early = Buffer.concat([hello(true), Buffer.alloc(PROOF_SIZE)])
  for (const bytes of [Buffer.from('GET / HTTP/1.1\r\n\r\n'.repeat(8)), Buffer.alloc(10_000, 1), early]) {
    const stranger = await connect(t, port)
    stranger.write(bytes)
    t.equal((await hear(stranger)).length, 0, `${bytes.length} bytes`)
  }
  const keyless = await connect(t, port)
  keyless.write(hello(false))
  t.equal((await hear(keyless))[AT_CHALLENGE_STATUS], REFUSED_NEEDS_KEY)
  const silent = await connect(t, port)
  const half = await connect(t, port)
  half.write(hello(true).subarray(0, 20))
  const ends = Promise.all([hear(silent), hear(half)])
  const friend = await callTcpAddress({ host: HOST, port }, TIMEOUT_MS)
  friend.destroy()
  await eventually('the friend', () => admitted.length === 1)
  t.match(await ends, [{ length: 0 }, { length: 0 }], 'who says nothing, or stops, is hung up on in the end')
})

t.test(
  'so many callers of another user may wait, from whatever addresses, and keep none of ours out',
  async t => {
    if (process.getuid?.() !== 0) return skipHere(t, 'another user: needs root')
    useKey(t, KEY)
    const { port, admitted } = await listen(t)
    const [all, beyond] = [CALLERS_MAX + 44, 44]
    const program = `let ends = 0
    for (let i = 0; i < ${all}; i++)
      require('net').connect({ host: '${HOST}', port: ${port}, localAddress: '127.0.0.' + (1 + i % 8) })
        .on('error', () => {}).on('close', () => { if (++ends === ${beyond}) console.log('refused') }).resume()`
    const crowd = spawn(process.execPath, ['-e', program], { uid: NOBODY, gid: NOBODY, cwd: '/' })
    t.teardown(() => void crowd.kill('SIGKILL'))
    await withWatchdog('one too many', once(crowd.stdout, 'data'))
    const friend = await callTcpAddress({ host: HOST, port }, TIMEOUT_MS)
    friend.destroy()
    await eventually('its admission', () => admitted.length === 1)
    t.equal(crowd.exitCode, null, 'the crowd waits on')
  },
)

t.test('without a key: only loopback, only our user, only callers without a key', async t => {
  useKey(t, undefined)
  for (const host of ['0.0.0.0', '::', '192.0.2.1'])
    await t.rejects(
      openTcpPort({ host, port: 0 }, () => {}),
      { code: 'ERR_NIC_KEY', message: /FASTSOCKETS_KEY_FILE/ },
    )
  const { port, admitted } = await listen(t)
  const friend = await callTcpAddress({ host: HOST, port }, TIMEOUT_MS)
  friend.destroy()
  await eventually('the friend', () => admitted.length === 1)
  const keyed = await connect(t, port)
  keyed.write(hello(true))
  t.equal((await hear(keyed))[AT_CHALLENGE_STATUS], REFUSED_HAS_NO_KEY)
  if (process.getuid?.() !== 0) return skipHere(t, 'another user: needs root')
  const program = `const s = require('net').connect(${port}, '${HOST}', () => s.write(Buffer.from('${hello(false).toString('hex')}', 'hex'))); s.on('data', d => { console.log(d[${AT_CHALLENGE_STATUS}]); s.destroy() })`
  const asNobody = { uid: NOBODY, gid: NOBODY, cwd: '/' }
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], asNobody)
  t.equal(stdout.trim(), String(REFUSED_USER))
  t.equal(admitted.length, 1)
})
