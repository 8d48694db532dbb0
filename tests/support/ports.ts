/** Ports that tests need, and ports that tests take away. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { Test } from 'tap'
import { CANDIDATE_COUNT, hashedPort } from '../../fastsockets/bootstrap/hashed-port.ts'

const PORT_MIN = 10_000
/** From here on Linux takes ports for clients and for `listen(0)` by default. */
const EPHEMERAL_MIN = 32_768

type Serve = (socket: Socket) => void

/** Holds some of a port's candidates, so that a listener has to do without them. */
async function occupyHashedPorts(t: Test, port: number, count: number, serve: Serve): Promise<void> {
  for (let candidate = 0; candidate < count; candidate++) {
    const squatter = createServer(serve)
    squatter.listen(hashedPort(port, candidate), '127.0.0.1')
    await once(squatter, 'listening')
    t.teardown(() => void squatter.close())
  }
}

/** A free port of whose candidates the first `count` are held, by a listener that hangs up by default. */
export async function crowdedPort(
  t: Test,
  count: number = CANDIDATE_COUNT,
  serve: Serve = socket => socket.destroy(),
): Promise<number> {
  for (;;) {
    const port = await freePort()
    try {
      await occupyHashedPorts(t, port, count, serve)
      return port
    } catch (error) {
      // Another socket holds a candidate now, and may free it later.
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    }
  }
}

/** A port that was free a moment ago, and that the system gives only to a program that asks for it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORT_MIN, EPHEMERAL_MIN)
    if (await isFree(port)) return port
  }
}

/** A port whose first hashed port is free as well: its listener gets that one. */
export async function portWithFirstHashed(): Promise<number> {
  for (;;) {
    const port = await freePort()
    const hashed = hashedPort(port, 0)
    if (hashed !== port && hashed < EPHEMERAL_MIN && (await isFree(hashed))) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  await once(server, 'listening').catch(() => {})
  if (!server.listening) return false
  server.close()
  await once(server, 'close')
  return true
}
