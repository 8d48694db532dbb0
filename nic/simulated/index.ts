/** Hardware in virtual time: hosts, NICs and a switch in one thread, from one seed. See README.md. */
export { HARDWARE, type Hardware } from './hardware.ts'
export { FaultCounters, isFaultless, type NetworkFaults } from './network-faults.ts'
export { openSimulatedPair, simulatedDriver } from './simulated-driver.ts'
export { SimulatedHost } from './simulated-host.ts'
export { SimulatedInterface } from './simulated-interface.ts'
export { SimulatedNetwork } from './simulated-network.ts'
export { SimulatedKernels, SimulatedSocket } from './simulated-socket.ts'
export { Timeline } from './timeline.ts'
