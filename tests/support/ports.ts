/** Ports that tests need, and ports that tests take away. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { Test } from 'tap'
import { CANDIDATE_COUNT, hashedPort } from '../../fastsockets/bootstrap/hashed-port.ts'

/** Holds some of a port's candidates, so that a listener has to do without them. */
export async function occupyHashedPorts(
  t: Test,
  port: number,
  count: number = CANDIDATE_COUNT,
): Promise<void> {
  for (let candidate = 0; candidate < count; candidate++) {
    const squatter = createServer(socket => socket.destroy())
    squatter.listen(hashedPort(port, candidate), '127.0.0.1')
    await once(squatter, 'listening')
    t.teardown(() => void squatter.close())
  }
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
