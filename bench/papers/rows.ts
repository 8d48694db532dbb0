/** The papers' numbers, and how ours are got. Sections, tables and figures are those of the papers: their texts have no page numbers. */
import {
  creditShare,
  matrixPart,
  matrixUs,
  rdmaRoundTripUs,
  roundTripUs,
  type Setup,
  streamRate,
  zcopyRate,
} from './experiments.ts'
import * as machines from './machines.ts'
import { responseUs } from './web-server.ts'

/**
 * `number`: counts, unless a parameter was fitted to it. `bound`: the paper gives a limit (`theirs`), which ours must keep.
 * `figure`: the paper draws it, and its text has no number; only ours is shown.
 */
export type RowKind = 'number' | 'bound' | 'figure'

export interface PaperRow {
  readonly id: string
  readonly paper: string
  readonly what: string
  readonly unit: string
  readonly kind: RowKind
  /** Undefined for a figure. */
  readonly theirs?: number
  readonly source: string
  readonly ours: () => number
  /** The layers that ours passes through, in virtual time. */
  readonly by: string
}

const FAST = 'Fast Sockets 1997'
const VI = 'Sockets over VI 1999'
const WSDLITE = 'WSDLite 2000'
const EMP = 'Sockets over EMP 2002'
const SDP = 'SDP on Windows 2006'

const NIC = 'NIC'
const AM = 'channel'
const STREAM = 'raw socket'
const MESSAGES = 'message socket'
const RDMA = 'NIC: set-up, answer, RDMA write'
const FETCH = 'NIC: offer, RDMA read, report'

const KIB = 1024
const MB = 1e6
const BITS = 8
/** Sizes of WSDLite's figures 4 and 5: 1 byte to 32 KB. */
const SIZES = Array.from({ length: 16 }, (_, power) => 2 ** power)
/** EMP, section 7.2 and 7.4: TCP's latency, bandwidth and time to connect, the middle of 200 to 250 us. */
const TCP_US = 120
const TCP_RATE = 550 / BITS
const TCP_CONNECT_US = 225

/** WSDLite takes the faster of two ways, by size. */
function wsdliteUs(size: number): number {
  return Math.min(roundTripUs(machines.wsdlite, size), rdmaUs(size))
}

/** The calls of the library are charged once a message, whatever messages of its own it sends. */
function rdmaUs(size: number, isCached = true): number {
  const { hardware, callCycles = 0 } = machines.wsdlite
  return rdmaRoundTripUs({ ...machines.vipl, hardware }, size, isCached) + (4 * callCycles) / hardware.cpuMhz
}

/** The first size, to 1 %, from which RDMA is faster than copying. */
function crossover(): number {
  let copies = KIB
  let writes = 32 * KIB
  while (writes - copies > copies / 100) {
    const size = Math.round((copies + writes) / 2)
    if (roundTripUs(machines.wsdlite, size) < rdmaUs(size)) copies = size
    else writes = size
  }
  return writes
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

const lengthen = (size: number): number => wsdliteUs(size) / roundTripUs(machines.vipl, size)
const rate = (setup: Setup, size: number): number => streamRate(setup, size, 4 * MB).rate
const cyclesPerByte = (setup: Setup, size: number): number => streamRate(setup, size, 4 * MB).cyclesPerByte

/** With so many credits: the NIC compares acknowledgements' descriptors as often as those are among the posted ones. */
function creditUs(credits: number): number {
  const share = creditShare(machines.empStream.hardware, credits, 320)
  return roundTripUs({ ...machines.empStream, comparedCount: 1 + share / (1 - share) }, 4) / 2
}

/** TCP gives out the work and collects it over the link of the first node. */
function matrixRatio(): number {
  const nodes = 4
  const size = 512
  const { computeUs, given, returned } = matrixPart(machines.empStream, size, nodes)
  const tcpUs = ((nodes - 1) * (given + returned)) / TCP_RATE + 2 * TCP_US + computeUs
  return tcpUs / matrixUs(machines.empStream, size, nodes)
}

function fileRatio(): number {
  const { copyUsPerByte } = machines.empStream.hardware
  return rate(machines.empFiles, 64 * KIB) / (1 / (1 / TCP_RATE + copyUsPerByte))
}

export const ROWS: readonly PaperRow[] = [
  {
    id: 'fast-round-trip',
    paper: FAST,
    what: 'round trip of a small message',
    unit: 'us',
    kind: 'number',
    theirs: 60,
    source: 'abstract',
    ours: () => roundTripUs(machines.fastSockets, 4),
    by: STREAM,
  },
  {
    id: 'fast-rate',
    paper: FAST,
    what: 'throughput',
    unit: 'MB/s',
    kind: 'number',
    theirs: 33,
    source: 'abstract',
    ours: () => rate(machines.fastSockets, 8000),
    by: STREAM,
  },
  {
    id: 'fast-of-am',
    paper: FAST,
    what: 'throughput, share of active messages, at least',
    unit: '',
    kind: 'bound',
    theirs: 0.9,
    source: '3.5',
    ours: () => rate(machines.fastSockets, 8000) / rate(machines.activeMessages, 8000),
    by: `${STREAM}, ${AM}`,
  },
  {
    id: 'fast-posting',
    paper: FAST,
    what: 'round trip of 4 KB, receives posted in time',
    unit: 'us',
    kind: 'figure',
    source: '3.4',
    ours: () => roundTripUs(machines.fastSockets, 4 * KIB),
    by: STREAM,
  },
  {
    id: 'fast-no-posting',
    paper: FAST,
    what: 'the same, posted too late',
    unit: 'us',
    kind: 'figure',
    source: '3.4',
    ours: () => roundTripUs({ ...machines.fastSockets, postsLate: true }, 4 * KIB),
    by: STREAM,
  },
  {
    id: 'vi-raw-round-trip',
    paper: VI,
    what: 'raw VI, 4 B round trip',
    unit: 'us',
    kind: 'number',
    theirs: 52.4,
    source: 'table 1',
    ours: () => roundTripUs(machines.vi, 4),
    by: NIC,
  },
  {
    id: 'vi-round-trip',
    paper: VI,
    what: 'sockets, 4 B round trip',
    unit: 'us',
    kind: 'number',
    theirs: 74.9,
    source: 'table 1',
    ours: () => roundTripUs(machines.viSockets, 4),
    by: STREAM,
  },
  {
    id: 'vi-raw-rate',
    paper: VI,
    what: 'raw VI, 50,000 B one way',
    unit: 'Mb/s',
    kind: 'number',
    theirs: 753.2,
    source: 'table 1',
    ours: () => BITS * rate(machines.vi, 50_000),
    by: NIC,
  },
  {
    id: 'vi-rate',
    paper: VI,
    what: 'sockets, 50,000 B one way',
    unit: 'Mb/s',
    kind: 'number',
    theirs: 697.3,
    source: 'table 1',
    ours: () => BITS * rate(machines.viSockets, 50_000),
    by: STREAM,
  },
  {
    id: 'vi-of-raw',
    paper: VI,
    what: 'one way, share of raw VI, at least',
    unit: '',
    kind: 'bound',
    theirs: 0.9,
    source: '3.2',
    ours: () => rate(machines.viSockets, 50_000) / rate(machines.vi, 50_000),
    by: `${STREAM}, ${NIC}`,
  },
  {
    id: 'vi-rpc',
    paper: VI,
    what: 'RPC, 4 B round trip',
    unit: 'us',
    kind: 'number',
    theirs: 111.21,
    source: 'table 2',
    ours: () => roundTripUs(machines.viRpc, 4),
    by: AM,
  },
  {
    id: 'vi-rpc-large',
    paper: VI,
    what: 'RPC, 8000 B round trip',
    unit: 'us',
    kind: 'number',
    theirs: 448.1,
    source: 'table 2',
    ours: () => roundTripUs(machines.viRpc, 8000),
    by: AM,
  },
  {
    id: 'vi-cycles',
    paper: VI,
    what: "receiver's cycles a byte, 50,000 B",
    unit: '',
    kind: 'figure',
    source: 'figure 7',
    ours: () => cyclesPerByte(machines.viSockets, 50_000),
    by: STREAM,
  },
  {
    id: 'wsdlite-raw-one-way',
    paper: WSDLITE,
    what: 'native VIPL, 0 B one way',
    unit: 'us',
    kind: 'number',
    theirs: 9,
    source: '5.1',
    ours: () => roundTripUs(machines.vipl, 1) / 2,
    by: NIC,
  },
  {
    id: 'wsdlite-raw-rate',
    paper: WSDLITE,
    what: 'native VIPL, peak sustained',
    unit: 'MB/s',
    kind: 'number',
    theirs: 102,
    source: '5.1',
    ours: () => rate(machines.vipl, 64 * KIB),
    by: NIC,
  },
  {
    id: 'wsdlite-crossover',
    paper: WSDLITE,
    what: 'size from which RDMA beats copying',
    unit: 'B',
    kind: 'number',
    theirs: 11.9 * KIB,
    source: '4.1',
    ours: crossover,
    by: `${STREAM}; ${RDMA}`,
  },
  {
    id: 'wsdlite-round-trips',
    paper: WSDLITE,
    what: 'round trips to VIPL, mean of 1 B to 32 KB',
    unit: '',
    kind: 'number',
    theirs: 1.192,
    source: '5.2',
    ours: () => mean(SIZES.map(lengthen)),
    by: `${STREAM}; ${RDMA}`,
  },
  {
    id: 'wsdlite-of-native',
    paper: WSDLITE,
    what: 'share of native performance, mean',
    unit: '',
    kind: 'number',
    theirs: 0.7,
    source: 'abstract',
    ours: () => mean(SIZES.map(size => 1 / lengthen(size))),
    by: `${STREAM}; ${RDMA}`,
  },
  {
    id: 'wsdlite-native-32k',
    paper: WSDLITE,
    what: 'native VIPL, ping-pong of 32 KB',
    unit: 'MB/s',
    kind: 'number',
    theirs: 80,
    source: '5.2',
    ours: () => (64 * KIB) / roundTripUs(machines.vipl, 32 * KIB),
    by: NIC,
  },
  {
    id: 'wsdlite-32k',
    paper: WSDLITE,
    what: 'WSDLite, ping-pong of 32 KB',
    unit: 'MB/s',
    kind: 'number',
    theirs: 72,
    source: '5.2',
    ours: () => (64 * KIB) / wsdliteUs(32 * KIB),
    by: RDMA,
  },
  {
    id: 'wsdlite-worst',
    paper: WSDLITE,
    what: 'bandwidth, lowest share of VIPL',
    unit: '',
    kind: 'number',
    theirs: 0.78,
    source: '5.2',
    ours: () => Math.min(...SIZES.map(size => 1 / lengthen(size))),
    by: `${STREAM}; ${RDMA}`,
  },
  {
    id: 'wsdlite-cached',
    paper: WSDLITE,
    what: '16 KB by RDMA and back, memory registered before',
    unit: 'us',
    kind: 'figure',
    source: '4.1',
    ours: () => rdmaUs(16 * KIB),
    by: RDMA,
  },
  {
    id: 'wsdlite-not-cached',
    paper: WSDLITE,
    what: 'the same, memory registered anew',
    unit: 'us',
    kind: 'figure',
    source: '4.1',
    ours: () => rdmaUs(16 * KIB, false),
    by: RDMA,
  },
  {
    id: 'emp-raw-one-way',
    paper: EMP,
    what: 'raw EMP, 4 B one way',
    unit: 'us',
    kind: 'number',
    theirs: 28,
    source: '8',
    ours: () => roundTripUs(machines.rawEmp, 4) / 2,
    by: NIC,
  },
  {
    id: 'emp-datagram',
    paper: EMP,
    what: 'datagram sockets, 4 B one way',
    unit: 'us',
    kind: 'number',
    theirs: 28.5,
    source: '7.1',
    ours: () => roundTripUs(machines.empDatagram, 4) / 2,
    by: MESSAGES,
  },
  {
    id: 'emp-stream',
    paper: EMP,
    what: 'streaming sockets, 4 B one way',
    unit: 'us',
    kind: 'number',
    theirs: 37,
    source: '7.1',
    ours: () => roundTripUs(machines.empStream, 4) / 2,
    by: STREAM,
  },
  {
    id: 'emp-rate',
    paper: EMP,
    what: 'streaming sockets, peak',
    unit: 'Mb/s',
    kind: 'number',
    theirs: 840,
    source: '7.2',
    ours: () => BITS * rate(machines.empStream, 64 * KIB),
    by: STREAM,
  },
  {
    id: 'emp-acks-1',
    paper: EMP,
    what: 'acknowledgements among messages, 1 credit',
    unit: '',
    kind: 'number',
    theirs: 0.5,
    source: '7.1',
    ours: () => creditShare(machines.empStream.hardware, 1, 320),
    by: AM,
  },
  {
    id: 'emp-acks-32',
    paper: EMP,
    what: 'the same, 32 credits',
    unit: '',
    kind: 'number',
    theirs: 0.0625,
    source: '7.1',
    ours: () => creditShare(machines.empStream.hardware, 32, 320),
    by: AM,
  },
  {
    id: 'emp-expected',
    paper: EMP,
    what: 'one way, acknowledgements in the unexpected queue',
    unit: 'us',
    kind: 'figure',
    source: 'figure 11',
    ours: () => roundTripUs(machines.empStream, 4) / 2,
    by: STREAM,
  },
  {
    id: 'emp-compared',
    paper: EMP,
    what: 'the same, 32 acknowledgement descriptors compared first',
    unit: 'us',
    kind: 'figure',
    source: 'figure 11',
    ours: () => roundTripUs({ ...machines.empStream, comparedCount: 33 }, 4) / 2,
    by: STREAM,
  },
  {
    id: 'emp-credits-1',
    paper: EMP,
    what: 'one way, acknowledgements compared as often as they come, 1 credit',
    unit: 'us',
    kind: 'figure',
    source: 'figure 12',
    ours: () => creditUs(1),
    by: `${STREAM}, ${AM}`,
  },
  {
    id: 'emp-credits-4',
    paper: EMP,
    what: 'the same, 4 credits',
    unit: 'us',
    kind: 'figure',
    source: 'figure 12',
    ours: () => creditUs(4),
    by: `${STREAM}, ${AM}`,
  },
  {
    id: 'emp-credits-32',
    paper: EMP,
    what: 'the same, 32 credits',
    unit: 'us',
    kind: 'figure',
    source: 'figure 12',
    ours: () => creditUs(32),
    by: `${STREAM}, ${AM}`,
  },
  {
    id: 'emp-matrix',
    paper: EMP,
    what: 'product of 512 x 512 numbers on 4 nodes, times as fast as TCP',
    unit: '',
    kind: 'figure',
    source: 'figure 17',
    ours: matrixRatio,
    by: `${STREAM}; TCP: 7.2`,
  },
  {
    id: 'emp-web',
    paper: EMP,
    what: 'web server, 4 B, times as fast as TCP, at most',
    unit: '',
    kind: 'number',
    theirs: 6,
    source: '7.4',
    ours: () => (TCP_CONNECT_US + 2 * TCP_US) / responseUs(machines.empStream, 4),
    by: `${STREAM}; TCP: 7.2, 7.4`,
  },
  {
    id: 'emp-ftp',
    paper: EMP,
    what: 'ftp, files in memory, times as fast as TCP',
    unit: '',
    kind: 'number',
    theirs: 2,
    source: '8',
    ours: fileRatio,
    by: `${STREAM}; TCP: 7.2`,
  },
  {
    id: 'sdp-one-way',
    paper: SDP,
    what: '1 B one way',
    unit: 'us',
    kind: 'number',
    theirs: 17.9,
    source: '4.4',
    ours: () => roundTripUs(machines.sdp, 1) / 2,
    by: STREAM,
  },
  {
    id: 'sdp-overlapped',
    paper: SDP,
    what: 'what overlapped calls add',
    unit: 'us',
    kind: 'number',
    theirs: 15,
    source: '3.2',
    ours: () => (roundTripUs(machines.sdpOverlapped, 1) - roundTripUs(machines.sdp, 1)) / 2,
    by: STREAM,
  },
  {
    id: 'sdp-rate',
    paper: SDP,
    what: 'BCopy, one socket, 128 KB',
    unit: 'MB/s',
    kind: 'number',
    theirs: 1224,
    source: '4.3',
    ours: () => rate(machines.sdp, 128 * KIB),
    by: STREAM,
  },
  {
    id: 'sdp-zcopy',
    paper: SDP,
    what: 'ZCopy, one socket, 1 MB',
    unit: 'MB/s',
    kind: 'figure',
    source: '3.6',
    ours: () => zcopyRate(machines.sdp, KIB * KIB, 8 * MB).rate,
    by: FETCH,
  },
  {
    id: 'sdp-cycles',
    paper: SDP,
    what: "receiver's cycles a byte, BCopy, 1 MB",
    unit: '',
    kind: 'figure',
    source: '4.3',
    ours: () => cyclesPerByte(machines.sdp, KIB * KIB),
    by: STREAM,
  },
  {
    id: 'sdp-zcopy-cycles',
    paper: SDP,
    what: 'the same, ZCopy',
    unit: '',
    kind: 'figure',
    source: '3.6',
    ours: () => zcopyRate(machines.sdp, KIB * KIB, 8 * MB).cyclesPerByte,
    by: FETCH,
  },
  {
    id: 'sdp-rate-two',
    paper: SDP,
    what: 'BCopy, two sockets, 128 KB',
    unit: 'MB/s',
    kind: 'number',
    theirs: 1316,
    source: '4.3',
    ours: () => streamRate(machines.sdp, 128 * KIB, 64 * MB, 2).rate,
    by: STREAM,
  },
]
