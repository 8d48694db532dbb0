/** What the peers of a thread take from their process. The simulator makes one for each simulated process. */
import { type Driver, drivers, hostIdentity } from '../../nic/index.ts'
import type { Introduction } from '../bootstrap/bootstrap-layout.ts'
import type { BootstrapNetwork } from '../bootstrap/bootstrap-server.ts'
import { type Kernel, realKernel } from '../bootstrap/kernel.ts'
import { remoteDrivers } from '../bootstrap/remote-hosts.ts'
import { allowsDriver } from '../policy/own-policy.ts'
import type { ChannelHost } from '../stream/channel-host.ts'
import type { PeerShares } from '../stream/socket-channel.ts'

/** The driver between processes of one host. Between hosts it is one of remote-hosts.ts. */
export const DRIVER = 'shm'

export interface PeersHost {
  readonly kernel: Kernel
  identity(): Pick<Introduction, 'hostIdentity' | 'uid' | 'pid'>
  /** Those that the policy and the machine allow, between processes of this host and to another one. */
  localDrivers(): readonly Driver[]
  remoteDrivers(): readonly Driver[]
  /** Of the simulator. */
  readonly network?: BootstrapNetwork
  readonly channelHost?: ChannelHost
  readonly shares?: PeerShares
  readonly retentionBytes?: number
}

export const processHost: PeersHost = {
  kernel: realKernel,
  identity: () => ({ hostIdentity: hostIdentity(), uid: process.geteuid?.() ?? 0, pid: process.pid }),
  localDrivers: () => {
    const driver = allowsDriver(DRIVER) ? drivers.get(DRIVER) : undefined
    return driver === undefined ? [] : [driver]
  },
  remoteDrivers,
}
