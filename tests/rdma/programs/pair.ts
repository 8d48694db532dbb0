/**
 * Both of two hosts. `serve`: echoes, until the client says that it is done. `call`: connects to the server by its hashed
 * port, over and over until it is there, and checks what it gets; WIRE says which wire it must be. The last call also finds a
 * listener and an endpoint that only the name service knows, and sees the way to the server fail and come back, and then
 * the server's device.
 */
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import net, { type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Endpoint } from '../../../am/index.ts'
import { hashedPort } from '../../../fastsockets/bootstrap/hashed-port.ts'
import { transportOf } from '../../../fastsockets/index.ts'
import { describeDevice, drivers } from '../../../nic/index.ts'
import { LOST_MS } from '../../../nic/verbs/open-adapter.ts'
import { newSum, patternedMiB } from '../patterned.ts'
import { callEndpoints, checkBack, checkDead, serveEndpoints } from './pair-endpoint.ts'

const SERVER = process.env.SERVER as string
const DEVICE = process.env.DEVICE as string
/** Over it. */
const RDMA_DEVICE = 'rxe0'
const PORT = 7000
/** Another program has its hashed ports. */
const NAMED_PORT = 7100
/** Called for the first time when the server's device was there, was removed, and is back. */
const LATE_PORT = 7200
const MIB_COUNT = 4
const PAUSE_MS = 500
const ATTEMPT_MS_MAX = 30_000
const ATTEMPTS_MAX = 400
/** What RoCE packets are sent to. */
const ROCE_PORT = 4791

async function serve(): Promise<void> {
  console.log(`# serving, device: ${describeDevice() ?? 'none'}`)
  for (const candidate of [0, 1, 2]) await listen(net.createServer(), hashedPort(NAMED_PORT, candidate))
  for (const port of [PORT, NAMED_PORT, LATE_PORT]) await listen(net.createServer(answer), port)
  await serveEndpoints()
}

async function listen(server: net.Server, port: number): Promise<void> {
  server.listen(port, '0.0.0.0')
  await once(server, 'listening')
}

function answer(socket: Socket): void {
  socket.on('error', () => {})
  socket.once('data', first => {
    const mode = String.fromCharCode(first[0] as number)
    if (mode === 'q') return void loseLink(socket)
    if (mode === 'r') return void loseDevice(socket)
    if (mode === 'a') execFileSync('rdma', ['link', 'add', RDMA_DEVICE, 'type', 'rxe', 'netdev', DEVICE])
    socket.write(first)
    socket.pipe(socket)
  })
}

/** What a connection, and the next one, see when the device's link goes down. */
async function loseLink(socket: Socket): Promise<void> {
  execFile('ip', ['link', 'set', DEVICE, 'down'])
  const [error] = await once(socket, 'error')
  check('a port that goes down is ECONNRESET', error.code === 'ECONNRESET')
  check(
    'with the reason as its cause',
    /gone down/.test(`${error.cause?.message} ${error.cause?.cause?.message}`),
  )
  check('the driver says why', drivers.get('verbs')?.availability().usable === false)
  process.exit()
}

/** The same when it is removed, which does not end before its users let it go. */
async function loseDevice(socket: Socket): Promise<void> {
  const removed = promisify(execFile)('rdma', ['link', 'delete', RDMA_DEVICE])
  const [error] = await once(socket, 'error')
  check('a device that is removed is ECONNRESET', error.code === 'ECONNRESET')
  check('which its cause says', /was removed/.test(`${error.cause?.message} ${error.cause?.cause?.message}`))
  await removed
  check('and is let go', drivers.get('verbs')?.availability().usable === false)
}

async function call(): Promise<void> {
  console.log(`# calling, device: ${describeDevice() ?? 'none'}`)
  const socket = await dial(PORT)
  const wire = transportOf(socket)
  console.log(`# ${JSON.stringify(wire)}`)
  check(`the wire is ${process.env.WIRE}`, wire.transport === process.env.WIRE)
  if (process.env.REASON)
    check(`the reason is ${process.env.REASON}`, wire.reason?.code === process.env.REASON)
  check(
    'the addresses are those of the wire',
    socket.remoteAddress === SERVER && socket.localAddress !== SERVER,
  )
  check('what was sent comes back', await isEchoed(socket, MIB_COUNT))
  if (process.env.LAST) {
    await callPastOwnListener()
    const named = await dial(NAMED_PORT)
    checkVerbs('a listener without a hashed port is found by name', named)
    check('and answers', await isEchoed(named, 1))
    await loseTheWay(socket)
    await loseItsDevice(await callEndpoints(check))
    await endServer()
  }
  process.exit()
}

/** This host listens on the same port, on all its addresses: a call to the other host means the other host. */
async function callPastOwnListener(): Promise<void> {
  const own = net.createServer(() => check('our own listener is not called', false))
  await listen(own, PORT)
  const socket = await dial(PORT)
  checkVerbs('with a listener of our own on the same port, the other host is called', socket)
  check('and answers all the same', await isEchoed(socket, 1))
  socket.destroy()
  own.close()
}

/**
 * The server's RDMA packets get lost, and nothing else: the bootstrap connection stays. Not ours, because the software device
 * would try for ever to send what its own host drops.
 */
async function loseTheWay(socket: Socket): Promise<void> {
  const match = `protocol ip u32 match ip protocol 17 0xff match ip dport ${ROCE_PORT} 0xffff action drop`
  tc(`qdisc add dev ${DEVICE} clsact`)
  tc(`filter add dev ${DEVICE} ingress ${match}`)
  socket.write('into nowhere')
  const [error] = await once(socket, 'error')
  check('a way that fails is ETIMEDOUT', error.code === 'ETIMEDOUT')
  tc(`qdisc del dev ${DEVICE} clsact`)
  const again = await dial(PORT)
  checkVerbs('when it is back, so is RDMA', again)
  check('and what was sent comes back', await isEchoed(again, 1))
}

function tc(words: string): void {
  execFileSync('tc', words.split(' '))
}

/** The server's device is removed under an open connection, and comes back. */
async function loseItsDevice(endpoint: Endpoint): Promise<void> {
  const socket = await dial(PORT)
  checkVerbs('a connection before the device is removed', socket)
  socket.write('r')
  const [error] = await once(socket, 'error')
  check("the other host's device that is removed is ECONNRESET", error.code === 'ECONNRESET')
  await checkDead(endpoint, check)
  const slow = await dial(PORT)
  const { transport, reason } = transportOf(slow)
  check(`the next connection is on TCP: ${reason?.code}`, transport === 'tcp' && reason !== undefined)
  slow.write('a')
  await once(slow, 'data')
  slow.destroy()
  await pause(LOST_MS + PAUSE_MS)
  checkVerbs('when it is back, so is RDMA', await dial(LATE_PORT))
  await checkBack(endpoint, check)
}

/** Until the server cannot be reached any more. */
async function endServer(): Promise<void> {
  const last = await dial(LATE_PORT)
  let isOver = false
  for (const event of ['error', 'close']) last.on(event, () => (isOver = true))
  for (; !isOver; await pause(PAUSE_MS)) last.write('q')
}

/** The server may not be there yet. */
async function dial(port: number): Promise<Socket> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const socket = net.connect(port, SERVER)
    try {
      await once(socket, 'connect', { signal: AbortSignal.timeout(ATTEMPT_MS_MAX) })
      socket.on('error', () => {})
      return socket
    } catch {
      socket.destroy()
      await pause(PAUSE_MS)
    }
  }
  throw new Error(`nobody answers at ${SERVER}`)
}

async function isEchoed(socket: Socket, count: number): Promise<boolean> {
  const expected = newSum()
  const received = newSum()
  let left = count * 1024 * 1024 + 1
  const isBack = new Promise<void>(resolve => {
    socket.on('data', bytes => {
      received.update(bytes)
      left -= bytes.length
      if (left <= 0) resolve()
    })
  })
  expected.update('e')
  socket.write('e')
  for (let i = 0; i < count; i++) {
    const bytes = patternedMiB(i)
    expected.update(bytes)
    if (!socket.write(bytes)) await once(socket, 'drain')
  }
  await isBack
  return expected.digest('hex') === received.digest('hex')
}

function checkVerbs(what: string, socket: Socket): void {
  const { transport, reason } = transportOf(socket)
  check(`${what}${reason === undefined ? '' : `: ${reason.text}`}`, transport === 'verbs')
}

function check(what: string, holds: boolean): void {
  console.log(`${holds ? 'ok' : 'not ok'} - ${what}`)
  if (!holds) process.exitCode = 1
}

if (process.argv[2] === 'serve') await serve()
else await call()
