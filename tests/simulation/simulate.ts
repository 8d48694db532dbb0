/** Runs one system. */
import { BootstrapWorld } from './bootstrap-world.ts'
import { EndpointWorld } from './endpoint-world.ts'
import { Broken } from './ledger.ts'
import { MixedWorld } from './mixed-world.ts'
import { NamesWorld } from './names-world.ts'
import { PeersWorld } from './peers-world.ts'
import { closeParsers } from './program-sockets.ts'
import { PromotionWorld } from './promotion-world.ts'
import { RawWorld } from './raw-world.ts'
import { RpcWorld } from './rpc-world.ts'
import { SocketWorld } from './socket-world.ts'
import type { Outcome, SimulationOptions, World } from './world.ts'

type MakeWorld = (options: SimulationOptions) => World

export const KINDS = {
  endpoints: options => new EndpointWorld(options),
  sockets: options => new SocketWorld(options),
  raw: options => new RawWorld(options),
  promotion: options => new PromotionWorld(options),
  names: options => new NamesWorld(options),
  bootstrap: options => new BootstrapWorld(options),
  peers: options => new PeersWorld(options),
  rpc: options => new RpcWorld(options),
  mixed: options => new MixedWorld(options),
} satisfies Record<string, MakeWorld>

export type Kind = keyof typeof KINDS

/**
 * Resolves after one system has run from its beginning to its end, within one callback of Node's: no other work comes in
 * between. While the product drains the queue of a dead peer, it throws the errors of listeners in the next tick: they fail the run, too.
 */
export function simulate(kind: Kind, options: SimulationOptions): Promise<Outcome> {
  return new Promise(resolve => {
    setImmediate(() => {
      let late: Error | undefined
      const note = (error: Error): void => {
        late ??= error
      }
      process.on('uncaughtException', note)
      const outcome = run(KINDS[kind], options)
      setImmediate(() => {
        process.off('uncaughtException', note)
        resolve(late === undefined ? outcome : { ...outcome, failure: outcome.failure ?? late.message })
      })
    })
  })
}

function run(makeWorld: MakeWorld, options: SimulationOptions): Outcome {
  const world = makeWorld(options)
  let failure: string | undefined
  try {
    world.run()
  } catch (error) {
    failure = `${(error as Error).message} (step ${world.step}, ${world.network.timeline.nowUs} us)`
    if (!(error instanceof Broken)) failure += `\n${(error as Error).stack}`
  } finally {
    world.dispose()
    closeParsers(world.kernels)
  }
  const { network, finished, returned } = world
  const { counters, timeline } = network
  return {
    seed: options.seed,
    hardware: network.hardware.name,
    trace: network.trace,
    messages: finished,
    returned,
    frames: network.frameCount,
    events: timeline.count,
    virtualMs: timeline.nowUs / 1000,
    faults: { ...counters, ...world.ownFaults },
    steps: Math.min(world.step, options.steps),
    failure,
  }
}
