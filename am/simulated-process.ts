/**
 * What a process on a simulated host gives to its endpoints: virtual time, its own event loop and rendezvous, the host's
 * driver. The endpoints are the product's own. Nothing but the program that simulates loads this.
 */
import type { Driver } from '../nic/index.ts'
import {
  type SimulatedHost,
  SimulatedKernels,
  type SimulatedNetwork,
  simulatedDriver,
} from '../nic/simulated/index.ts'
import { EventLoop } from './progress/event-loop.ts'
import { SpinRule } from './progress/spin-rule.ts'
import { RETENTION_BYTES_DEFAULT } from './reliability/reliability-options.ts'
import type { ControlSocket } from './rendezvous/control-connection.ts'
import type { EndpointName } from './rendezvous/endpoint-name.ts'
import { Reception, type RendezvousHost } from './rendezvous/reception.ts'
import type { Runtime } from './runtime.ts'

/** Most callers that have not sent their OPEN. */
const CALLERS_MAX = 1024

/**
 * `isPolling`: the event loop spins where the recent past says that it pays; otherwise the NIC's interrupt wakes it.
 * `queueSize`: bytes of a channel's queues, and of the frames that it keeps until they are acknowledged.
 */
export function openProcess(
  network: SimulatedNetwork,
  kernels: SimulatedKernels,
  host: SimulatedHost,
  isPolling = false,
  queueSize = RETENTION_BYTES_DEFAULT,
): { readonly runtime: Runtime; readonly driver: Driver } {
  const { clock } = host
  const hosts = new Map<string, RendezvousHost>()
  const address = SimulatedKernels.addressOf(host)
  const identity = network.newIdentity().toString('hex')
  const newName = (): EndpointName => ({
    host: identity,
    thread: identity,
    endpoint: network.newIdentity().toString('hex').slice(16),
    address,
  })
  const none = (): undefined => undefined
  const reception = new Reception(CALLERS_MAX, 'tcp', endpoint => hosts.get(endpoint), none, clock)
  kernels.listen(host, socket => reception.meet(socket as ControlSocket))
  return {
    driver: simulatedDriver(network, host, queueSize),
    runtime: {
      retentionBytes: queueSize,
      clock,
      eventLoop: new EventLoop(clock, new SpinRule({ isContended: () => !isPolling })),
      rendezvous: {
        open: async (endpoint, one) => void hosts.set(endpoint, one),
        close: endpoint => void hosts.delete(endpoint),
        ref: () => {},
        unref: () => {},
      },
      callAddress: (place, timeoutMs) => kernels.connect(host, place, timeoutMs),
      newName,
    },
  }
}
