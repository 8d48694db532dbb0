import { NicError } from '../errors.ts'
import type { Driver, Offer, OfferOptions, VirtualInterface } from '../nic.ts'
import { isRingSize, RING_SIZE_DEFAULT } from '../ring/ring-layout.ts'
import type { SimulatedHost } from './simulated-host.ts'
import { SimulatedInterface } from './simulated-interface.ts'
import type { SimulatedNetwork } from './simulated-network.ts'

const TIMEOUT_MS_DEFAULT = 5000
const NAME = 'simulated'

interface PendingOffer {
  readonly host: SimulatedHost
  readonly queueSize: number
  readonly resolve: (end: VirtualInterface) => void
  readonly forget: () => void
}

/** The offers of one network, by blob. */
type Offers = Map<string, PendingOffer>

const offersOf = new WeakMap<SimulatedNetwork, Offers>()

/** The driver of one host. Hosts of one network connect with each other. `queueSize`: of offers that name none. */
export function simulatedDriver(
  network: SimulatedNetwork,
  host: SimulatedHost,
  queueSize = RING_SIZE_DEFAULT,
): Driver {
  const offers: Offers = offersOf.get(network) ?? new Map()
  offersOf.set(network, offers)
  return {
    name: NAME,
    reach: 'network',
    needsAddress: true,
    availability: () => ({ usable: true }),
    offer: options => openOffer(network, host, offers, { queueSize, ...options }),
    connect: async blob => connect(network, host, offers, blob),
  }
}

function openOffer(
  network: SimulatedNetwork,
  host: SimulatedHost,
  offers: Offers,
  options: OfferOptions = {},
): Offer {
  const { queueSize = RING_SIZE_DEFAULT } = options
  if (!isRingSize(queueSize)) {
    throw new NicError('ERR_NIC_ARGUMENT', 'queueSize must be a power of two between 64 KiB and 1 GiB')
  }
  const blob = network.newIdentity()
  const id = blob.toString('hex')
  let cancel = (): void => {}
  const accepted = new Promise<VirtualInterface>((resolve, reject) => {
    const forget = (): void => {
      host.clock.clearTimeout(timer)
      offers.delete(id)
    }
    const fail = (message: string): void => {
      forget()
      reject(new NicError('ERR_NIC_CONNECT_FAILED', message))
    }
    const timer = host.clock.setTimeout(
      () => fail('the offer was not taken up in time'),
      options.timeoutMs ?? TIMEOUT_MS_DEFAULT,
    )
    cancel = () => fail('the offer was cancelled')
    offers.set(id, { host, queueSize, resolve, forget })
  })
  accepted.catch(() => {})
  return { blob, accepted, cancel }
}

/** Connects at once on both sides: the layer above has carried the blob over the network already. */
function connect(
  network: SimulatedNetwork,
  host: SimulatedHost,
  offers: Offers,
  blob: Uint8Array,
): VirtualInterface {
  const pending = offers.get(Buffer.from(blob).toString('hex'))
  if (pending === undefined)
    throw new NicError('ERR_NIC_BAD_ADDRESS', 'this is not the address of a simulated offer')
  network.timeline.hasSettled = true
  pending.forget()
  const [offering, connecting] = openSimulatedPair(network, pending.host, host, pending.queueSize)
  pending.resolve(offering)
  return connecting
}

/** Two connected interfaces at once, for a caller that holds both ends. */
export function openSimulatedPair(
  network: SimulatedNetwork,
  first: SimulatedHost,
  second: SimulatedHost,
  queueSize = RING_SIZE_DEFAULT,
): [SimulatedInterface, SimulatedInterface] {
  const near = new SimulatedInterface(network, first, NAME, queueSize)
  const far = new SimulatedInterface(network, second, NAME, queueSize)
  near.peer = far
  far.peer = near
  return [near, far]
}
