/**
 * Hardware to simulate, as numbers. Times are microseconds; a frame passes these stages, each of which handles one packet
 * at a time (a pipeline, so that the slowest stage limits the throughput):
 *
 *   program        NIC               switch           NIC                     program
 *   sendUs         busUs/byte        switchUs         nicReceiveUs            receiveUs
 *   copyUs/byte -> nicSendUs      -> wireUs/byte   -> matchUs/descriptor   -> copyUs/byte
 *                  wireUs/byte                        busUs/byte              wakeUs if it sleeps
 *
 * This is LogGP (Alexandrov et al. 1995) with its terms taken apart: o = sendUs or receiveUs, g = the slower of nicSendUs
 * and nicReceiveUs, G = the slowest per-byte cost, L = the rest.
 *
 * Each preset cites its source. Numbers that the cited sentence does not have are our estimates, and none is fitted to a paper's table yet.
 */
export interface Hardware {
  readonly name: string
  /** CPU time of the host to post a send, and to handle a received frame. */
  readonly sendUs: number
  readonly receiveUs: number
  /** CPU time per byte of one copy between a program's memory and the queues, on each side. */
  readonly copyUsPerByte: number
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
  /** One-sided reads and writes. */
  readonly hasRdma: boolean
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
  hasRdma: true,
  descriptors: 1024,
}

/**
 * Generic Active Messages on the Myrinet of Berkeley's NOW (LANai 4.1, UltraSPARC 170). LogP of Martin et al. (ISCA 1997):
 * o = 2.9 us, g = 5.8 us, L = 5.0 us, 38 MB/s, limited by the SBus. The wire has 1.28 Gb/s (Boden et al. 1995).
 */
const myrinetLanai: Hardware = {
  ...ideal,
  name: 'myrinet-lanai',
  sendUs: 2.9,
  receiveUs: 2.9,
  // memcpy of an UltraSPARC 170: about 100 MB/s (estimate).
  copyUsPerByte: 0.01,
  pollUs: 0.5,
  // Signal delivery of Solaris 2.5 (estimate).
  wakeUs: 40,
  turnUs: 5,
  nicSendUs: 2,
  nicReceiveUs: 2,
  busUsPerByte: 1 / 38,
  wireUsPerByte: 1 / 160,
  linkUs: 0.1,
  switchUs: 0.5,
  packetMax: 8 * KIB,
  headerSize: 16,
  frameMax: 8 * KIB,
  hasRdma: false,
}

/** GM 1.6.4 on Myrinet 2000 (Myricom 2003): 6.7 to 8.5 us one way, 240 MB/s, o_s + o_r = 0.54 us, 2 Gb/s. */
const myrinetGm: Hardware = {
  ...ideal,
  name: 'myrinet-gm',
  sendUs: 0.3,
  receiveUs: 0.24,
  copyUsPerByte: 1 / 800,
  pollUs: 0.1,
  wakeUs: 13,
  turnUs: 2,
  registerUs: 30,
  registerUsPerPage: 0.8,
  nicSendUs: 2.6,
  nicReceiveUs: 2.6,
  busUsPerByte: 1 / 450,
  wireUsPerByte: 1 / 245,
  linkUs: 0.1,
  switchUs: 0.5,
  packetMax: 4 * KIB,
  headerSize: 16,
}

/**
 * GigaNet cLAN, as WSDLite (2000) measured it: 9 us one way for 0 bytes, 102 MB/s, 0.58 us in the switch (section 5), 15 us
 * to register and deregister up to 64 KiB (section 4).
 */
const clan: Hardware = {
  ...ideal,
  name: 'clan',
  sendUs: 1.2,
  receiveUs: 1,
  copyUsPerByte: 1 / 330,
  pollUs: 0.2,
  wakeUs: 15,
  turnUs: 2,
  registerUs: 15,
  registerUsPerPage: 0.3,
  nicSendUs: 3,
  nicReceiveUs: 3,
  busUsPerByte: 1 / 250,
  wireUsPerByte: 1 / 110,
  linkUs: 0.2,
  switchUs: 0.58,
  packetMax: 1.5 * KIB,
  headerSize: 28,
}

/**
 * EMP on Alteon Tigon2 (sockets over EMP, 2002): 28 us one way for 4 bytes, 880 Mb/s, 0.55 us for each descriptor that the
 * NIC compares. Packets are Ethernet's; the Packet Engines switch adds about 5 us.
 */
const emp: Hardware = {
  ...ideal,
  name: 'emp',
  sendUs: 1,
  receiveUs: 1,
  copyUsPerByte: 1 / 400,
  pollUs: 0.2,
  wakeUs: 20,
  turnUs: 2,
  registerUs: 10,
  registerUsPerPage: 0.5,
  nicSendUs: 9,
  nicReceiveUs: 9,
  matchUs: 0.55,
  busUsPerByte: 1 / 400,
  wireUsPerByte: 1 / 125,
  linkUs: 0.5,
  switchUs: 5,
  packetMax: 1500,
  headerSize: 38,
  frameMax: 64 * KIB,
  hasRdma: false,
  descriptors: 64,
}

/** InfiniBand DDR under the SDP of Windows (2006): 17.9 us one way, 1,316 MB/s of its 2 GB/s data rate, PCI Express x8. */
const sdpDdr: Hardware = {
  ...ideal,
  name: 'sdp-ddr',
  sendUs: 0.6,
  receiveUs: 0.6,
  copyUsPerByte: 1 / 2600,
  pollUs: 0.1,
  wakeUs: 8,
  turnUs: 1,
  registerUs: 20,
  registerUsPerPage: 0.2,
  nicSendUs: 1,
  nicReceiveUs: 1,
  busUsPerByte: 1 / 1400,
  wireUsPerByte: 1 / 2000,
  linkUs: 0.1,
  switchUs: 0.2,
  packetMax: 2 * KIB,
  headerSize: 30,
}

/** Fast Ethernet and the kernel of 1997: what the papers compare with. IEEE 802.3u; costs are estimates. */
const ethernet100m: Hardware = {
  ...ideal,
  name: 'ethernet-100m',
  sendUs: 40,
  receiveUs: 60,
  copyUsPerByte: 0.01,
  pollUs: 5,
  wakeUs: 40,
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
  hasRdma: false,
  descriptors: 256,
}

export const HARDWARE: ReadonlyMap<string, Hardware> = new Map(
  [ideal, myrinetLanai, myrinetGm, clan, emp, sdpDdr, ethernet100m].map(one => [one.name, one]),
)
