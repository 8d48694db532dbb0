/**
 * `npm run bench:am -- --driver tcp`, or `ethernet`: active messages between two network namespaces that a veth pair joins,
 * beside `node:net` and `node:dgram` there. Needs root. `--mtu 9000` is for both devices. `hosts-report.ts` prints it.
 */
import { ChildProgram } from '../fastsockets/cli/child-program.ts'
import type { Contestant } from './contestants/contestant.ts'
import { contestant as netRelinked } from './contestants/net-relinked.ts'
import { contestant as netTcp } from './contestants/net-tcp.ts'
import { decodeLatencies, Half } from './half.ts'
import { HOST_VARIABLE, PATIENCE, WIRE_VARIABLE } from './half-settings.ts'
import { measuredEnvironment } from './measured-environment.ts'
import { SMALL } from './sizes.ts'
import { type Host, keyFileOf, makeTwoHosts, noTwoHosts, setMtu } from './two-hosts.ts'

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
  /** One measurement of am-caller.ts; `settings` of the environment are for both sides. */
  callActive(progress: string, what: string, count: number, settings?: NodeJS.ProcessEnv): Promise<Measured>
  /** The medians of an echo of 64 bytes, in microseconds. */
  echoOverTcp(): Promise<number>
  echoOverSockets(): Promise<number>
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
  for (const host of [near, far]) setMtu(host, mtu)
  const env = { ...measuredEnvironment(false), FASTSOCKETS_KEY_FILE: keyFileOf(scope) }
  const on = ({ namespace }: Host): readonly string[] => ['ip', 'netns', 'exec', namespace]
  const start = (
    host: Host,
    script: URL,
    args: readonly string[],
    settings: NodeJS.ProcessEnv = {},
  ): ChildProgram => ChildProgram.start(`${args[0]}`, script, args, { ...env, ...settings }, on(host))
  const echo = async (contestant: Contestant, more: NodeJS.ProcessEnv): Promise<number> => {
    const settings = { [HOST_VARIABLE]: far.address, ...more }
    const server = Half.start(contestant, 'server', settings, on(far))
    const client = Half.start(contestant, 'client', settings, on(near))
    const { address } = await server.ask({ ask: 'serve' })
    await client.ask({ ask: 'dial', address })
    const counted = await client.ask({ ask: 'pingPong', size: SMALL, warmUpMs: 500, ms: MEASURE_MS })
    await client.ask({ ask: 'close' })
    await Promise.all([client.stop(), server.stop()])
    return decodeLatencies(counted).percentiles().p50
  }
  return {
    async callActive(progress, what, count, settings) {
      const peer = start(far, AM_PEER, [progress, driver], settings)
      const { name } = await peer.receive<{ name: string }>(TIMEOUT_MS)
      const caller = start(near, AM_CALLER, [what, name, String(count), driver], settings)
      const result = await caller.receive<Measured>(TIMEOUT_MS)
      await caller.stop()
      await peer.stop()
      return result
    },
    echoOverTcp: () => echo(netTcp, {}),
    echoOverSockets: () =>
      echo(netRelinked, { ...PATIENCE, FASTSOCKETS_DRIVERS: `shm,${driver}`, [WIRE_VARIABLE]: driver }),
    async echoOverDatagrams() {
      const server = start(far, DATAGRAM_ECHO, ['serve', far.address])
      const { port } = await server.receive<{ port: number }>(TIMEOUT_MS)
      const client = start(near, DATAGRAM_ECHO, ['ask', far.address, String(port), String(MEASURE_MS)])
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
