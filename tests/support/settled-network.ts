/**
 * The simulated driver in a network where time passes within each call: until everything that is under way has arrived.
 * Doorbells ring from the real event loop. So tests of drivers in real time find what they expect.
 */
import { type Driver, ForwardingInterface, type FrameSink, type VirtualInterface } from '../../nic/index.ts'
import { HARDWARE, SimulatedNetwork, simulatedDriver } from '../../nic/simulated/index.ts'
import { wrapDriver } from '../../nic/wrapper/wrapped-driver.ts'

/** All that is under way needs less, also behind a busy CPU; the timers of offers are longer. */
const SETTLE_US = 500_000
const NEVER_MS = 2 ** 31 - 1

/** `name`: `simulated`, or `simulated-` and the name of a hardware. */
export function settledNetworkDriver(name: string): Driver {
  const hardware = HARDWARE.get(name.slice('simulated-'.length) || 'ideal')
  if (hardware === undefined) throw new Error(`no hardware ${name}`)
  // Two hosts: whatever is connected lies between them.
  const network = new SimulatedNetwork({ seed: 1, hardware })
  const [offering, connecting] = [network.addHost(), network.addHost()]
  const passTime = (): void => network.timeline.runUntil(network.timeline.nowUs + 1000)
  setInterval(passTime, 1).unref()
  const wrap = (inner: Driver): Driver =>
    wrapDriver(inner, name, end => new SettledInterface(end, name, network))
  const near = wrap(simulatedDriver(network, offering))
  const far = wrap(simulatedDriver(network, connecting))
  return { ...near, connect: (blob, options) => far.connect(blob, options) }
}

class SettledInterface extends ForwardingInterface {
  readonly #network: SimulatedNetwork
  #keepAlive: NodeJS.Timeout | undefined

  constructor(inner: VirtualInterface, driver: string, network: SimulatedNetwork) {
    super(inner, driver, inner.capabilities)
    this.#network = network
  }

  override commit(length: number): void {
    super.commit(length)
    this.#settle()
  }

  override poll(sink: FrameSink, limit: number): number {
    try {
      return super.poll(sink, limit)
    } finally {
      this.#settle()
    }
  }

  override setDoorbell(listener: () => void): void {
    this.inner.setDoorbell(() => setImmediate(() => this.state !== 'closed' && listener()))
  }

  override ref(): void {
    if (this.state === 'open') this.#keepAlive ??= setInterval(() => {}, NEVER_MS)
    this.#keepAlive?.ref()
  }

  override unref(): void {
    this.#keepAlive?.unref()
  }

  override close(): void {
    clearInterval(this.#keepAlive)
    super.close()
  }

  /** Until nothing is due for a while. */
  #settle(): void {
    const { timeline } = this.#network
    while (timeline.nextUs <= timeline.nowUs + SETTLE_US) timeline.step()
  }
}
