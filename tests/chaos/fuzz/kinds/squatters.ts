/**
 * Squatters: another program has the hashed port, the abstract name of a unix listener, or the door that a greeting names, and
 * answers the calls of a real client with anything. The client must come to a verdict, with a connection only if the greeting was right.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net, { type Server, type Socket } from 'node:net'
import { callDoor, Race, shakeHands } from '../../../../fastsockets/bootstrap/bootstrap-client.ts'
import {
  DOOR_SIZE,
  encodeAnswer,
  encodeIntroduction,
  GREETING_MAGIC,
} from '../../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { doorPath } from '../../../../fastsockets/bootstrap/door.ts'
import { hashedPort } from '../../../../fastsockets/bootstrap/hashed-port.ts'
import { shadowName, UNIX } from '../../../../fastsockets/host/unix-paths.ts'
import { greetingOf } from '../../../support/greeting.ts'
import { portWithFirstHashed } from '../../../support/ports.ts'
import type { Random } from '../../../support/random.ts'
import type { Attack, Kind } from '../kind.ts'
import { spoil } from '../spoil.ts'
import { introduction } from './bootstrap-bytes.ts'

const AT_ONCE = 16
/** A squatter that says nothing is waited for so long; it must not be the rule. */
const PATIENCE_MS = 50
const LISTENER_PORT_OF_UNIX = 0

/** Says something spoilt, in one piece or two, and then is silent or hangs up. */
function squat(random: Random, greeting: Buffer, socket: Socket): void {
  // A caller may say HELLO to what looks like a server in its first phase.
  socket.on('error', () => {}).resume()
  const said = spoil(random, greeting)
  const cut = random.chance(0.2) ? random.within(0, said.length) : said.length
  socket.write(said.subarray(0, cut))
  if (cut < said.length) socket.write(said.subarray(cut))
  if (random.chance(0.97)) socket.end()
  else setTimeout(() => socket.destroy(), PATIENCE_MS).unref()
}

export const squatters: Kind = {
  name: 'squatters',
  what: 'a squatter of hashed ports, abstract names and doors, to a client that calls there',
  reaches: ['greeting', 'answer', 'STRANGER', 'VERSION'],
  async open() {
    const port = await portWithFirstHashed()
    const key = `unix:fuzz-${process.pid}`
    const door = randomBytes(DOOR_SIZE)
    let serve: (socket: Socket, isUnix: boolean) => void = () => {}
    let answerAtDoor: (socket: Socket) => void = () => {}
    const servers: Server[] = [
      net.createServer(socket => serve(socket, false)).listen(hashedPort(port, 0), '127.0.0.1'),
      net.createServer(socket => serve(socket, true)).listen(shadowName(key)),
      net.createServer(socket => answerAtDoor(socket)).listen({ path: doorPath(door) }),
    ]
    await Promise.all(servers.map(server => once(server, 'listening')))
    const greetingFor = (listener: number, bytes: (length: number) => Buffer): Buffer =>
      encodeIntroduction(GREETING_MAGIC, { ...introduction(bytes, door), port: listener })

    const call = async (isUnix: boolean) =>
      isUnix
        ? await greetingOf(key, LISTENER_PORT_OF_UNIX, UNIX, PATIENCE_MS)
        : await greetingOf('127.0.0.1', port, 4, PATIENCE_MS)

    return {
      async attack({ random, inputs, count, wrong }: Attack) {
        const blob = random.bytes(40)
        const answer = encodeAnswer({ result: 0, driver: 'shm', blob })
        const greetings = [port, LISTENER_PORT_OF_UNIX].map(listener =>
          greetingFor(listener, length => random.bytes(length)),
        )
        serve = (socket, isUnix) => squat(random, greetings[Number(isUnix)] as Buffer, socket)
        answerAtDoor = socket => {
          socket.on('error', () => {})
          socket.once('data', () => socket.end(spoil(random, answer)))
        }
        // A call hears a greeting, and an answer perhaps.
        let left = inputs
        const work = async (): Promise<void> => {
          while (left-- > 0) {
            const isUnix = random.chance(0.5)
            const outcome = await call(isUnix)
            if (!('connection' in outcome)) {
              count(outcome.code)
              continue
            }
            count('greeting')
            const { connection, greeting } = outcome
            if (greeting.port !== (isUnix ? LISTENER_PORT_OF_UNIX : port))
              wrong(`a greeting for port ${greeting.port}`)
            left--
            const called = await callDoor(greeting.door, net.Socket.prototype.connect, new Race())
            if ('code' in called) count('no door')
            else {
              const hello = introduction(length => random.bytes(length))
              if ((await shakeHands(called, hello, PATIENCE_MS)) !== undefined) count('answer')
              called.destroy()
            }
            connection.destroy()
          }
        }
        await Promise.all(Array.from({ length: AT_ONCE }, work))
      },
      async honest() {
        serve = (socket, isUnix) => {
          socket.on('error', () => {})
          socket.write(greetingFor(isUnix ? LISTENER_PORT_OF_UNIX : port, length => Buffer.alloc(length)))
        }
        for (const isUnix of [false, true]) {
          const outcome = await call(isUnix)
          if (!('connection' in outcome)) throw new Error(`an honest greeting is ${outcome.code}`)
          outcome.connection.destroy()
        }
      },
      close() {
        for (const server of servers) server.close()
      },
    }
  },
}
