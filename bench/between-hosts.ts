/**
 * `npm run bench:am -- --driver tcp`, or `ethernet`: active messages between two network namespaces that a veth pair joins,
 * beside `node:net` and `node:dgram` there. Needs root. `--mtu 9000` is for both devices.
 */
import { execFileSync } from 'node:child_process'
import { ChildProgram } from '../fastsockets/cli/child-program.ts'
import { contestant as netTcp } from './contestants/net-tcp.ts'
import { decodeLatencies, Half } from './half.ts'
import { HOST_VARIABLE } from './half-settings.ts'
import { measuredEnvironment } from './measured-environment.ts'
import { SMALL } from './sizes.ts'
import { type Host, keyFileOf, makeTwoHosts, noTwoHosts } from './two-hosts.ts'

const TIMEOUT_MS = 120_000
const AM_PEER = new URL('./programs/am-peer.js', import.meta.url)
const AM_CALLER = new URL('./programs/am-caller.js', import.meta.url)
const DATAGRAM_ECHO = new URL('./programs/datagram-echo.js', import.meta.url)
const MEASURE_MS = 1500

export interface Measured {
  readonly p50Us?: number
  readonly rate?: number
  readonly bytesPerSecond?: number
}

export interface Network {
  /** One measurement of am-caller.ts. */
  callActive(progress: string, what: string, count: number): Promise<Measured>
  /** The medians of an echo, in microseconds. */
  echoOverTcp(): Promise<number>
  echoOverDatagrams(): Promise<number>
  close(): void
}

/** Throws where there can be no namespaces. */
export function openNetwork(driver: string, mtu: number): Network {
  const reason = noTwoHosts()
  if (reason) throw new Error(reason)
  const ends: (() => unknown)[] = []
  const scope = { teardown: (end: () => unknown) => void ends.push(end) }
  const { near, far } = makeTwoHosts(scope)
  for (const { namespace, device } of [near, far])
    execFileSync('ip', ['-n', namespace, 'link', 'set', device, 'mtu', String(mtu)])
  const env = { ...measuredEnvironment(false), FASTSOCKETS_KEY_FILE: keyFileOf(scope) }
  const on = ({ namespace }: Host): readonly string[] => ['ip', 'netns', 'exec', namespace]
  const start = (host: Host, script: URL, ...args: readonly string[]): ChildProgram =>
    ChildProgram.start(`${args[0]}`, script, args, env, on(host))
  return {
    async callActive(progress, what, count) {
      const peer = start(far, AM_PEER, progress, driver)
      const { name } = await peer.receive<{ name: string }>(TIMEOUT_MS)
      const caller = start(near, AM_CALLER, what, name, String(count), driver)
      const result = await caller.receive<Measured>(TIMEOUT_MS)
      await caller.stop()
      await peer.stop()
      return result
    },
    async echoOverTcp() {
      const settings = { [HOST_VARIABLE]: far.address }
      const server = Half.start(netTcp, 'server', settings, on(far))
      const client = Half.start(netTcp, 'client', settings, on(near))
      const { address } = await server.ask({ ask: 'serve' })
      await client.ask({ ask: 'dial', address })
      const counted = await client.ask({ ask: 'pingPong', size: SMALL, warmUpMs: 500, ms: MEASURE_MS })
      await client.ask({ ask: 'close' })
      await Promise.all([client.stop(), server.stop()])
      return decodeLatencies(counted).percentiles().p50
    },
    async echoOverDatagrams() {
      const server = start(far, DATAGRAM_ECHO, 'serve', far.address)
      const { port } = await server.receive<{ port: number }>(TIMEOUT_MS)
      const client = start(near, DATAGRAM_ECHO, 'ask', far.address, String(port), String(MEASURE_MS))
      const { p50Us } = await client.receive<{ p50Us: number }>(TIMEOUT_MS)
      await client.stop()
      await server.stop()
      return p50Us
    },
    close() {
      for (const end of ends.reverse()) end()
    },
  }
}
