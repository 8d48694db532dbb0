/**
 * The machines of the papers: a preset of nic/simulated, and how their programs use it. Every parameter that is fitted is
 * named in `FITS`, with the row that it was fitted to.
 */
import { HARDWARE, type Hardware } from '../../nic/simulated/index.ts'
import type { Setup } from './experiments.ts'

/**
 * CPU cycles of one call of a sockets library that sends or receives a message, on all machines. Fitted to the round trip of
 * Fast Sockets; the other papers' libraries cost what this one does at their clocks.
 */
export const CALL_CYCLES = 1386

/** What was fitted, and the name of the row. */
export const FITS: readonly { readonly parameter: string; readonly row: string }[] = [
  { parameter: 'cycles of a sockets call, all machines', row: 'fast-round-trip' },
  { parameter: 'clan: NIC per packet', row: 'wsdlite-raw-one-way' },
  { parameter: 'clan: copy per byte', row: 'wsdlite-crossover' },
  { parameter: 'clan: wire per byte', row: 'vi-raw-rate' },
  { parameter: 'clan: wake-up', row: 'vi-raw-round-trip' },
  { parameter: 'emp: NIC per packet', row: 'emp-raw-one-way' },
  { parameter: 'sdp-ddr: wake-up', row: 'sdp-one-way' },
  { parameter: 'sdp-ddr: bus per byte', row: 'sdp-rate-two' },
]

const KIB = 1024
/** Beyond the payload of a socket's message. */
const HEADERS = 64

export function preset(name: string): Hardware {
  const found = HARDWARE.get(name)
  if (found === undefined) throw new Error(`no hardware ${name}`)
  return found
}

/** Programs of the paper that use the NIC without sockets: they copy nothing. */
function raw(hardware: Hardware, isPolling: boolean): Setup {
  return { hardware: { ...hardware, copyUsPerByte: 0 }, layer: 'nic', isPolling }
}

function sockets(hardware: Hardware, isPolling: boolean): Setup {
  return { hardware, layer: 'stream', isPolling, callCycles: CALL_CYCLES }
}

const lanai = preset('myrinet-lanai')
export const activeMessages: Setup = { hardware: lanai, layer: 'am', isPolling: true }
export const fastSockets = sockets(lanai, true)

const clan = preset('clan')
export const vipl = raw(clan, true)
export const wsdlite = sockets(clan, true)

/** Sockets over VI 1999, section 3.2: Pentium II Xeon with 400 MHz, packets of 8 KB, programs that sleep while they wait. */
const xeon: Hardware = { ...clan, cpuMhz: 400, copyUsPerByte: (clan.copyUsPerByte * clan.cpuMhz) / 400 }
export const vi = raw(xeon, false)
export const viSockets = sockets({ ...xeon, frameMax: 8 * KIB + HEADERS }, false)

/**
 * The RPC runtime and its marshalling cost what a local RPC costs (table 2: 62.7 us for 4 bytes, 314.8 us for 8000), less
 * the two copies through shared memory. A round trip has four calls that send or receive, and each byte passes two of them.
 */
const LOCAL_RPC_US = 62.7
const LOCAL_RPC_US_PER_BYTE = (314.8 - 62.7) / 16_000 - 2 * xeon.copyUsPerByte
export const viRpc: Setup = {
  hardware: xeon,
  layer: 'am',
  isPolling: false,
  workUs: LOCAL_RPC_US / 4,
  workUsPerByte: LOCAL_RPC_US_PER_BYTE / 2,
}

const emp = preset('emp')
export const rawEmp = raw(emp, true)
export const empStream = sockets(emp, true)
export const empDatagram: Setup = { ...empStream, layer: 'message' }
/** Reads or writes a file in memory for each message: a system call and a copy. */
export const empFiles: Setup = {
  ...empStream,
  workUs: emp.systemCallUs,
  workUsPerByte: emp.copyUsPerByte,
}

/** SDP on Windows 2006, section 3.5: private buffers of 16 KB; sockets in the kernel; programs sleep. */
const sdpHardware: Hardware = { ...preset('sdp-ddr'), frameMax: 16 * KIB + HEADERS }
export const sdp: Setup = { ...sockets(sdpHardware, false), callsKernel: true }
/** Section 3.2: each call becomes two, and a helper thread must wake to copy what has arrived. */
export const sdpOverlapped: Setup = {
  ...sdp,
  workUs: (2 * sdpHardware.systemCallUs + sdpHardware.wakeUs) / 2,
}
