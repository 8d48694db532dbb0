/** User-level NIC access: one driver contract (nic.ts), one folder for each driver. See nic/README.md. */
import { ethernetDriver } from './ethernet/index.ts'
import { loopbackDriver } from './loopback/loopback-driver.ts'
import type { Driver } from './nic.ts'
import { shmDriver } from './shm/shm-driver.ts'
import { tcpDriver } from './tcp/index.ts'
import { verbsDriver } from './verbs/index.ts'

export { ablation } from './ablation.ts'
export { atomics } from './atomics.ts'
export { copyBytes, copyWords, hasBytes } from './copy.ts'
export { NicError, type NicErrorCode } from './errors.ts'
export { openSocketHelper } from './ethernet/index.ts'
export type { FaultCounts, FaultInterface } from './fault/fault-interface.ts'
export type { FaultOptions } from './fault/fault-options.ts'
export { type Log, openLog } from './log.ts'
export { openLoopbackPair } from './loopback/loopback-driver.ts'
export type * from './nic.ts'
export { isHidden, makeHidden } from './own-resources.ts'
export { isOwn, markOwn, newOwnSocket } from './own-sockets.ts'
export { assertMayUseNetwork, mayUseNetwork } from './permission.ts'
export { CallersByUser } from './posix/callers-by-user.ts'
export { type CoreTimes, readCoreTimes } from './posix/core-times.ts'
export { DESCRIPTORS_LEFT, hasFreeDescriptors } from './posix/free-descriptors.ts'
export { hostIdentity, isSameKernel } from './posix/host-identity.ts'
export { type IoPhase, openIoPhase } from './posix/io-phase.ts'
export { isListenerOf, isTcpListening, isUnixListening } from './posix/listeners.ts'
export { isOverflowUser, isOwnUser } from './posix/own-user.ts'
export { openPage, pageLink } from './posix/page.ts'
export { keepFreedMemory } from './posix/process-tuning.ts'
export { mappedAddress, textOfAddress } from './posix/socket-address.ts'
export { isIpv6Only, sharesPort } from './posix/socket-options.ts'
export { nameOfNearEnd, socketPair } from './posix/socket-pair.ts'
export { sourceAddressTo } from './posix/source-address.ts'
export { findTcpSocket, TCP_LISTEN } from './posix/tcp-sockets.ts'
export { countUdpSockets } from './posix/udp-sockets.ts'
export {
  canMoveNow,
  receiveNow,
  refuseDescriptors,
  sendNow,
  shutdownNow,
  userOfPeer,
} from './posix/unix-socket.ts'
export { peerInode } from './posix/unix-sockets.ts'
export { yieldCore } from './posix/yield-core.ts'
export { randomBytes } from './random.ts'
export { hasName, RENDEZVOUS_VARIABLE, reasonAgainstFolder, rendezvousFolder } from './rendezvous/folder.ts'
export { isNoWay, type NoWay, refusedName, withSocket } from './rendezvous/looking-up.ts'
export {
  endpointsName,
  listenerName,
  SLOTS,
  slotName,
  unixListenerName,
} from './rendezvous/names-layout.ts'
export { type NameState, type Publication, publishSocket } from './rendezvous/publishing.ts'
export { refreshRegularly } from './rendezvous/refreshing.ts'
export { addressOf, readOwnMemory } from './shm/own-memory.ts'
export * from './status.ts'
export { callTcpAddress, keyFile, limitSilenceOf, openTcpPort, readKey, type TcpPort } from './tcp/index.ts'
export { ProcessCount } from './threads/process-count.ts'
export { COUNT_GRANTED, COUNT_KEPT } from './threads/thread-layout.ts'
export type { DescribeFrame, WriteLine } from './trace/trace-interface.ts'
export type { VerbsCounters } from './verbs/counters.ts'
export {
  describeDevice,
  deviceAddress,
  hasDevice,
  type VerbsUse,
  verbsCounters,
  verbsUse,
} from './verbs/index.ts'
export { ForwardingInterface } from './wrapper/forwarding-interface.ts'
export { faultDriver, traceDriver, traceInterface, wrapWithFaults } from './wrapper/index.ts'

/** All drivers of this package, by name. Call `availability()` of a driver before use. */
export const drivers: ReadonlyMap<string, Driver> = new Map([
  [loopbackDriver.name, loopbackDriver],
  [shmDriver.name, shmDriver],
  [verbsDriver.name, verbsDriver],
  [ethernetDriver.name, ethernetDriver],
  [tcpDriver.name, tcpDriver],
])
