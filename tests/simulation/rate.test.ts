/**
 * How fast is simulation? Two endpoints exchange requests and replies over each preset, without faults; each request and each reply
 * is a message. Time is that of the CPU, which is real time where nothing else runs.
 */
import t from 'tap'
import { type Endpoint, OK, openEndpoint } from '../../am/index.ts'
import { openProcess } from '../../am/simulated-process.ts'
import { drainTicks } from '../../fastsockets/host/node-internals.ts'
import { HARDWARE, type Hardware, SimulatedKernels, SimulatedNetwork } from '../../nic/simulated/index.ts'

const RATE_MIN = 50_000
const EXCHANGES = 50_000
const REQUEST = 1
const REPLY = 2
const PAYLOAD = Buffer.alloc(256)
const QUEUE_SIZE = 128 * 1024
/** Virtual time between two looks of the program at its credits. */
const STEP_US = 20
const CONNECT_US = 1000

/** Messages a second. */
function measure(hardware: Hardware, mayLose: boolean): number {
  const network = new SimulatedNetwork({ seed: 1, hardware, mayLose })
  const kernels = new SimulatedKernels(network)
  const pass = (us: number): void => {
    network.timeline.runUntil(network.timeline.nowUs + us)
    drainTicks()
  }
  const ends: Endpoint[] = []
  for (let i = 0; i < 2; i++) {
    const { runtime, driver } = openProcess(network, kernels, network.addHost(), false, QUEUE_SIZE)
    openEndpoint({ drivers: [driver] }, runtime).then(end => ends.push(end))
  }
  drainTicks()
  const [near, far] = ends as [Endpoint, Endpoint]
  let replied = 0
  far.setHandler(REQUEST, message => message.reply(REPLY, message.word(0)))
  near.setHandler(REPLY, () => void replied++)
  let isMapped = false
  near.map(0, far.name).then(() => {
    isMapped = true
  })
  while (!isMapped) pass(CONNECT_US)
  const begun = process.cpuUsage()
  for (let sent = 0; replied < EXCHANGES; pass(STEP_US))
    while (sent < EXCHANGES && near.requestMedium(0, REQUEST, PAYLOAD, sent) === OK) sent++
  const { user, system } = process.cpuUsage(begun)
  return (2e6 * EXCHANGES) / (user + system)
}

for (const hardware of HARDWARE.values()) {
  for (const mayLose of [false, true]) {
    t.test(`${hardware.name}${mayLose ? ', which may lose frames' : ''}`, async t => {
      // Within one callback of Node's.
      const rate = await new Promise<number>(resolve =>
        setImmediate(() => resolve(measure(hardware, mayLose))),
      )
      t.ok(rate >= RATE_MIN, `${Math.round(rate)} messages a second`)
    })
  }
}
