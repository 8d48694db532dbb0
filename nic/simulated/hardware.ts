/**
 * Hardware to simulate, as numbers. Times are microseconds; a frame passes these stages, each of which handles one packet
 * at a time (a pipeline, so that the slowest stage limits the throughput):
 *
 *   program        NIC               switch           NIC                     program
 *   sendUs         busUs/byte        switchUs         nicReceiveUs            receiveUs
 *   copyUs/byte -> nicSendUs      -> wireUs/byte   -> matchUs/descriptor   -> copyUs/byte
 *   (unless        wireUs/byte                        busUs/byte              wakeUs if it sleeps,
 *   sendsInPlace)                                                             pollUs if it polls
 *
 * This is LogGP (Alexandrov et al. 1995) with its terms taken apart: o = sendUs or receiveUs, g = the slower of nicSendUs
 * and nicReceiveUs, G = the slowest per-byte cost, L = the rest.
 *
 * Each number has its source beside it: a section of the paper (texts without page numbers), a citation, `estimate`, or
 * `fitted` with the row of docs/papers.md that it was fitted to. What is fitted is not counted there as reproduced.
 */
export interface Hardware {
  readonly name: string
  /** CPU time of the host to post a send, and to handle a received frame. */
  readonly sendUs: number
  readonly receiveUs: number
  /** CPU time per byte of one copy between a program's memory and the queues, on each side. */
  readonly copyUsPerByte: number
  /** The NIC reads from the program's memory: sending takes no copy. */
  readonly sendsInPlace: boolean
  /** Clock of the CPU, for work that is known in cycles. */
  readonly cpuMhz: number
  /** CPU time of a call of the kernel, there and back. */
  readonly systemCallUs: number
  /** CPU time of a poll that finds nothing. */
  readonly pollUs: number
  /** From the NIC's interrupt until the sleeping program runs. */
  readonly wakeUs: number
  /** An iteration of the event loop. */
  readonly turnUs: number
  /** CPU time to register memory, up to 64 KiB, and for each further page of 4 KiB. */
  readonly registerUs: number
  readonly registerUsPerPage: number
  /** The NIC's time per packet, and per receive descriptor that it compares. */
  readonly nicSendUs: number
  readonly nicReceiveUs: number
  readonly matchUs: number
  /** DMA between host memory and NIC. */
  readonly busUsPerByte: number
  readonly wireUsPerByte: number
  /** The cable, and the cut-through latency of the switch. */
  readonly linkUs: number
  readonly switchUs: number
  /** Payload of a packet, and bytes of its headers on the wire. */
  readonly packetMax: number
  readonly headerSize: number
  /** Largest frame of an interface; the NIC sends it as packets. */
  readonly frameMax: number
  /** The network never loses a frame, and keeps order. */
  readonly isReliable: boolean
  /** One-sided access to the memory of a peer. */
  readonly oneSided: 'none' | 'write' | 'read and write'
  /** Receive descriptors of each end. A reliable network holds frames back, another one drops those that find none. */
  readonly descriptors: number
}

const KIB = 1024

/** No time passes but that of light: for tests of protocols. */
const ideal: Hardware = {
  name: 'ideal',
  sendUs: 0,
  receiveUs: 0,
  copyUsPerByte: 0,
  sendsInPlace: false,
  cpuMhz: 1000,
  systemCallUs: 0,
  pollUs: 0,
  wakeUs: 1,
  turnUs: 1,
  registerUs: 0,
  registerUsPerPage: 0,
  nicSendUs: 0,
  nicReceiveUs: 0,
  matchUs: 0,
  busUsPerByte: 0,
  wireUsPerByte: 0.0001,
  linkUs: 1,
  switchUs: 0,
  packetMax: 64 * KIB,
  headerSize: 0,
  frameMax: 1024 * KIB,
  isReliable: true,
  oneSided: 'read and write',
  descriptors: 1024,
}

/** Generic Active Messages on the Myrinet of Berkeley's NOW: LANai 4.1 on the SBus of an UltraSPARC 170. */
const myrinetLanai: Hardware = {
  ...ideal,
  name: 'myrinet-lanai',
  // LogP of Martin et al. (ISCA 1997): o = 2.9 us, L = 5.0 us. Their g = 5.8 us, the rate of small messages, is not modelled.
  sendUs: 2.9,
  receiveUs: 2.9,
  // L, less the two links and the switch.
  nicSendUs: 2.1,
  nicReceiveUs: 2.1,
  // Martin et al.: 38 MB/s, limited by the SBus.
  busUsPerByte: 1 / 38,
  // Boden et al. (IEEE Micro 1995): 1.28 Gb/s, cut-through within 0.55 us.
  wireUsPerByte: 1 / 160,
  switchUs: 0.5,
  linkUs: 0.1,
  headerSize: 16,
  cpuMhz: 167,
  // Estimate: memcpy of an UltraSPARC 170, read and write of memory that no cache holds.
  copyUsPerByte: 1 / 100,
  // Estimates: one uncached load; signal and system call of Solaris 2.5.
  pollUs: 0.5,
  wakeUs: 40,
  systemCallUs: 5,
  turnUs: 5,
  // Estimate: a fragment of Generic Active Messages.
  packetMax: 8 * KIB,
  frameMax: 8 * KIB,
  oneSided: 'none',
}

/** GM 1.6.4 on Myrinet 2000. No paper here used it. */
const myrinetGm: Hardware = {
  ...ideal,
  name: 'myrinet-gm',
  // Myricom (2003): o_s + o_r = 0.54 us, 6.7 to 8.5 us one way, 240 MB/s, links of 2 Gb/s.
  sendUs: 0.3,
  receiveUs: 0.24,
  nicSendUs: 2.6,
  nicReceiveUs: 2.6,
  wireUsPerByte: 1 / 245,
  switchUs: 0.5,
  linkUs: 0.1,
  // PCI of 64 bits and 66 MHz, less its overhead (estimate).
  busUsPerByte: 1 / 450,
  // All others: estimates for a Pentium 4 with 2 GHz.
  cpuMhz: 2000,
  copyUsPerByte: 1 / 800,
  sendsInPlace: true,
  pollUs: 0.1,
  wakeUs: 13,
  systemCallUs: 1,
  turnUs: 2,
  registerUs: 30,
  registerUsPerPage: 0.8,
  packetMax: 4 * KIB,
  headerSize: 16,
}

/** GigaNet cLAN GNN1000 in the servers of WSDLite (2000): Pentium III with 500 MHz, Windows 2000. */
const clan: Hardware = {
  ...ideal,
  name: 'clan',
  // Fitted, as their sum with the CPU's part: 9 us one way for 0 bytes (section 5.1).
  nicSendUs: 3.05,
  nicReceiveUs: 3.05,
  // Estimates: a doorbell across the PCI bus; a descriptor that is dequeued and posted anew.
  sendUs: 1,
  receiveUs: 0.9,
  // Section 5.1.
  switchUs: 0.58,
  // Fitted: 753.2 Mb/s of raw VI with 50,000 bytes (sockets over VI 1999, table 1). The wire has 1.25 Gb/s.
  wireUsPerByte: 1 / 96,
  linkUs: 0.2,
  // PCI of 64 bits and 66 MHz, less its overhead (estimate).
  busUsPerByte: 1 / 250,
  cpuMhz: 500,
  // Fitted: copying is faster up to 11.9 KB (section 4.1).
  copyUsPerByte: 1 / 442,
  // Section 4.1: registered buffers are sent from where they are.
  sendsInPlace: true,
  // Section 2.2.
  oneSided: 'write',
  // Estimate.
  pollUs: 0.2,
  // Fitted to 52.4 us for a round trip of raw VI (sockets over VI 1999, table 1), whose programs sleep.
  wakeUs: 17,
  // Estimates: NT 4.0.
  systemCallUs: 2,
  turnUs: 2,
  // Section 4.1: 15 us to register and deregister up to 64 KiB. Beyond: estimate.
  registerUs: 15,
  registerUsPerPage: 0.3,
  // Estimates: packets and their headers.
  packetMax: 1.5 * KIB,
  headerSize: 28,
}

/** EMP on Alteon's Tigon2, which has a CPU for each direction, in the machines of sockets over EMP (2002). */
const emp: Hardware = {
  ...ideal,
  name: 'emp',
  // Fitted, as their sum with the CPU's part: 28 us one way for 4 bytes of raw EMP (section 8).
  nicSendUs: 9.5,
  nicReceiveUs: 9.5,
  // Section 6.3.
  matchUs: 0.55,
  // Estimates: a doorbell; a descriptor that is dequeued and posted anew.
  sendUs: 1,
  receiveUs: 1,
  // Gigabit Ethernet (IEEE 802.3z); the Packet Engines switch adds about 5 us.
  wireUsPerByte: 1 / 125,
  switchUs: 5,
  linkUs: 0.5,
  packetMax: 1500,
  // Preamble, gap, header and checksum of Ethernet, 38 bytes, and a header of EMP (estimate: 32 bytes).
  headerSize: 70,
  // PCI of 64 bits and 66 MHz, less its overhead (estimate).
  busUsPerByte: 1 / 400,
  // Section 7: Pentium III with 700 MHz.
  cpuMhz: 700,
  // Estimate: memcpy between buffers of 64 KiB, in the cache of 1 MiB.
  copyUsPerByte: 1 / 400,
  // Section 2: EMP is a zero-copy protocol.
  sendsInPlace: true,
  // Estimates: Linux 2.4.
  pollUs: 0.2,
  wakeUs: 20,
  systemCallUs: 1,
  turnUs: 2,
  registerUs: 10,
  registerUsPerPage: 0.5,
  frameMax: 64 * KIB,
  oneSided: 'none',
  descriptors: 64,
}

/** InfiniBand DDR under the SDP of Windows (2006): Opteron with 2.2 GHz, PCI Express x8, two hosts without a switch. */
const sdpDdr: Hardware = {
  ...ideal,
  name: 'sdp-ddr',
  // Estimates for a Mellanox InfiniHost III Ex.
  sendUs: 0.6,
  receiveUs: 0.6,
  nicSendUs: 1.2,
  nicReceiveUs: 1.2,
  // Section 4.2: 20 Gb/s, of which 8b/10b leaves 2 GB/s.
  wireUsPerByte: 1 / 2000,
  linkUs: 0.1,
  switchUs: 0,
  // Fitted: 1,316 MB/s of two sockets (section 4.3).
  busUsPerByte: 1 / 1298,
  cpuMhz: 2200,
  // Estimate: memcpy within the cache of 1 MiB.
  copyUsPerByte: 1 / 2600,
  pollUs: 0.1,
  // Fitted, with the interrupt: 17.9 us one way for 1 byte (section 4.4).
  wakeUs: 8.75,
  // Section 3.2: a call of the kernel takes in the order of 2 us.
  systemCallUs: 2,
  // Estimates.
  turnUs: 1,
  registerUs: 20,
  registerUsPerPage: 0.2,
  packetMax: 2 * KIB,
  headerSize: 30,
}

/** Fast Ethernet (IEEE 802.3u) and the kernel of 1997: what the papers compare with. Costs are estimates. */
const ethernet100m: Hardware = {
  ...ideal,
  name: 'ethernet-100m',
  sendUs: 40,
  receiveUs: 60,
  cpuMhz: 167,
  copyUsPerByte: 0.01,
  pollUs: 5,
  wakeUs: 40,
  systemCallUs: 5,
  turnUs: 5,
  nicSendUs: 2,
  nicReceiveUs: 2,
  busUsPerByte: 1 / 80,
  wireUsPerByte: 1 / 12.5,
  linkUs: 0.5,
  switchUs: 10,
  packetMax: 1500,
  headerSize: 38,
  frameMax: 1480,
  isReliable: false,
  oneSided: 'none',
  descriptors: 256,
}

export const HARDWARE: ReadonlyMap<string, Hardware> = new Map(
  [ideal, myrinetLanai, myrinetGm, clan, emp, sdpDdr, ethernet100m].map(one => [one.name, one]),
)
