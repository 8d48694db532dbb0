/** What the papers measured, between two simulated hosts. Times are microseconds, rates bytes a microsecond: MB/s. */
import type { Registration } from '../../nic/index.ts'
import {
  type Hardware,
  openSimulatedPair,
  type SimulatedHost,
  type SimulatedInterface,
  SimulatedNetwork,
} from '../../nic/simulated/index.ts'
import { type Layer, manualGroup, openPorts, type Port, quietOwner } from './ports.ts'
import { runProgram, type Steps } from './virtual-program.ts'

/** A machine of a paper, and what its programs do per call. */
export interface Setup {
  readonly hardware: Hardware
  readonly layer: Layer
  readonly isPolling: boolean
  /** CPU cycles of a call that sends or receives, beyond those of the NIC. */
  readonly callCycles?: number
  readonly callsKernel?: boolean
  /** The program looks for messages first and receives then, so that none finds a receive posted. */
  readonly postsLate?: boolean
  /** Receive descriptors that the NIC compares before it finds the right one: 1 by default. */
  readonly comparedCount?: number
  /** CPU time that the program spends on each message and each of its bytes. */
  readonly workUs?: number
  readonly workUsPerByte?: number
}

const SEED = 1
const WARM_UPS = 4
const ROUNDS = 8
/** Send queues of one end: room for what is under way, and frames of 64 KiB. */
const QUEUE_SIZE = 1 << 20
const KIB = 1024

/** One process of a paper's benchmark. */
class Program {
  readonly port: Port
  readonly host: SimulatedHost
  readonly #setup: Setup
  #buffered = 0

  constructor(port: Port, setup: Setup) {
    this.port = port
    this.host = port.end.host
    this.#setup = setup
  }

  *send(bytes: Uint8Array): Steps {
    this.#charge(bytes.length)
    const { end } = this.port
    for (let sent = 0; sent < bytes.length; ) {
      const count = this.port.trySend(sent === 0 ? bytes : bytes.subarray(sent))
      sent += count
      if (count > 0) continue
      const wanted = Math.min(bytes.length - sent + KIB, end.capabilities.frameMax)
      yield end.hasRoom(wanted) ? 0 : wanted
    }
  }

  *receive(into: Uint8Array, length: number): Steps {
    for (let received = 0; received < length; ) {
      if (this.#setup.postsLate) this.port.look()
      const count = this.port.tryRecv(into.subarray(received, length))
      if (count === undefined) {
        yield 0
        continue
      }
      received += count
      this.#charge(count)
    }
    const { bytesBuffered } = this.port
    this.host.chargeCopy(bytesBuffered - this.#buffered)
    this.#buffered = bytesBuffered
  }

  #charge(length: number): void {
    const { callCycles = 0, callsKernel = false, workUs = 0, workUsPerByte = 0 } = this.#setup
    this.host.chargeCycles(callCycles)
    if (callsKernel) this.host.chargeSystemCall()
    this.host.charge(workUs + workUsPerByte * length)
  }
}

interface Pair {
  readonly network: SimulatedNetwork
  readonly near: Program
  readonly far: Program
  readonly hosts: readonly SimulatedHost[]
}

/** Two processes on hosts of their own, or beside others. */
function openPrograms(setup: Setup, network = networkOf(setup), beside: readonly SimulatedHost[] = []): Pair {
  const hosts = [network.addHost(beside[0]), network.addHost(beside[1])] as const
  for (const host of hosts) host.isPolling = setup.isPolling
  const ends = openSimulatedPair(network, hosts[0], hosts[1], QUEUE_SIZE)
  for (const end of ends) end.comparedCount = setup.comparedCount ?? 1
  const [near, far] = openPorts(setup.layer, ends)
  return { network, near: new Program(near, setup), far: new Program(far, setup), hosts }
}

function networkOf({ hardware }: Setup): SimulatedNetwork {
  return new SimulatedNetwork({ seed: SEED, hardware })
}

function runToEnd({ timeline }: SimulatedNetwork): void {
  while (timeline.step());
}

/** Of `size` bytes, there and back. */
export function roundTripUs(setup: Setup, size: number): number {
  const pair = openPrograms(setup)
  const { near, far } = pair
  const bytes = new Uint8Array(size)
  const ask = function* (): Steps {
    yield* near.send(bytes)
    yield* near.receive(bytes, size)
  }
  const answer = function* (): Steps {
    yield* far.receive(bytes, size)
    yield* far.send(bytes)
  }
  return meanUs(pair, ask, answer)
}

/** Time of one `ask`, whose peer runs `answer`. */
function meanUs({ network, near, far }: Pair, ask: () => Steps, answer: () => Steps): number {
  let beginUs = 0
  const asking = function* (): Steps {
    for (let i = 0; i < WARM_UPS + ROUNDS; i++) {
      if (i === WARM_UPS) beginUs = near.host.nowUs
      yield* ask()
    }
  }
  const answering = function* (): Steps {
    for (let i = 0; i < WARM_UPS + ROUNDS; i++) yield* answer()
  }
  let endUs = 0
  runProgram(near.port.end, asking(), () => {
    endUs = near.host.nowUs
  })
  runProgram(far.port.end, answering())
  runToEnd(network)
  close([near, far])
  return (endUs - beginUs) / ROUNDS
}

/**
 * Of messages of `size` bytes in one direction, over so many sockets at once, each with processes of its own; and what they
 * cost the receivers' CPUs. The second half of the stream counts.
 */
export function streamRate(
  setup: Setup,
  size: number,
  total: number,
  sockets = 1,
): { readonly rate: number; readonly cyclesPerByte: number } {
  const network = networkOf(setup)
  const count = Math.ceil(total / size)
  const half = count >> 1
  let beginUs = 0
  let endUs = 0
  let usedUs = 0
  let beside: readonly SimulatedHost[] = []
  const programs: Program[] = []
  for (let i = 0; i < sockets; i++) {
    const { near, far, hosts } = openPrograms(setup, network, beside)
    beside = hosts
    programs.push(near, far)
    const send = function* (): Steps {
      const bytes = new Uint8Array(size)
      for (let n = 0; n < count; n++) yield* near.send(bytes)
    }
    const receive = function* (): Steps {
      const bytes = new Uint8Array(size)
      for (let n = 0; n < count; n++) {
        yield* far.receive(bytes, size)
        if (n !== half) continue
        beginUs = far.host.nowUs
        usedUs -= far.host.usedUs
      }
      endUs = far.host.nowUs
      usedUs += far.host.usedUs
    }
    runProgram(near.port.end, send())
    runProgram(far.port.end, receive())
  }
  runToEnd(network)
  close(programs)
  const bytes = sockets * (count - half - 1) * size
  return { rate: bytes / (endUs - beginUs), cyclesPerByte: (usedUs * setup.hardware.cpuMhz) / bytes }
}

/**
 * Of `size` bytes there and back, each by RDMA after a set-up message and its answer (WSDLite 2000, section 4.1). Memory is
 * registered before, or anew for each message.
 */
export function rdmaRoundTripUs(setup: Setup, size: number, isCached = true): number {
  const pair = openPrograms(setup)
  const { near, far } = pair
  const small = new Uint8Array(16)
  const register = ({ port }: Program) =>
    port.end.register(new Uint8Array(size), { remoteRead: false, remoteWrite: true })
  const memories = { near: register(near), far: register(far) }
  const registerAnew = (program: Program): void => {
    if (!isCached) register(program).deregister()
  }
  const send = function* (from: Program, local: Registration, remote: Registration): Steps {
    const { end } = from.port
    yield* from.send(small)
    registerAnew(from)
    yield* from.receive(small, small.length)
    end.rdmaWrite(local, 0, end.importKey(remote.key), 0, size, 0)
    end.pollCompletions({ handleCompletion() {} }, 1)
    yield* from.send(small)
  }
  const receive = function* (by: Program): Steps {
    yield* by.receive(small, small.length)
    registerAnew(by)
    yield* by.send(small)
    yield* by.receive(small, small.length)
  }
  const ask = function* (): Steps {
    yield* send(near, memories.near, memories.far)
    yield* receive(near)
  }
  const answer = function* (): Steps {
    yield* receive(far)
    yield* send(far, memories.far, memories.near)
  }
  return meanUs(pair, ask, answer)
}

/**
 * Of messages of `size` bytes in one direction, each offered, fetched by RDMA, and reported (Read ZCopy: SDP 2006, section 2.2), one
 * after another; and what they cost the receiver's CPU. Memory is registered before.
 */
export function zcopyRate(
  setup: Setup,
  size: number,
  total: number,
): { readonly rate: number; readonly cyclesPerByte: number } {
  const pair = openPrograms({ ...setup, layer: 'nic' })
  const { near, far } = pair
  const [source, sink] = [near, far].map(({ port }) =>
    port.end.register(new Uint8Array(size), { remoteRead: true, remoteWrite: false }),
  ) as [Registration, Registration]
  const small = new Uint8Array(16)
  const count = Math.ceil(total / size)
  const send = function* (): Steps {
    for (let n = 0; n < count; n++) {
      yield* near.send(small)
      yield* near.receive(small, small.length)
    }
  }
  const fetch = function* (): Steps {
    const { end } = far.port
    for (let n = 0; n < count; n++) {
      yield* far.receive(small, small.length)
      end.rdmaRead(sink, 0, end.importKey(source.key), 0, size, 0)
      // The CPU is free until an interrupt reports the completion.
      const askedUs = far.host.usedUs
      end.pollCompletions({ handleCompletion() {} }, 1)
      idleUs += far.host.usedUs - askedUs
      far.host.charge(far.host.wakeUs)
      yield* far.send(small)
    }
  }
  const beginUs = far.host.nowUs
  const usedUs = far.host.usedUs
  let idleUs = 0
  let endUs = 0
  runProgram(near.port.end, send())
  runProgram(far.port.end, fetch(), () => {
    endUs = far.host.nowUs
  })
  runToEnd(pair.network)
  close([near, far])
  const bytes = count * size
  const cycles = (far.host.usedUs - usedUs - idleUs) * setup.hardware.cpuMhz
  return { rate: bytes / (endUs - beginUs), cyclesPerByte: cycles / bytes }
}

/** CPU cycles to multiply and add two numbers of a product of matrices: an estimate. */
const PRODUCT_CYCLES = 4
const NUMBER_SIZE = 8

/** What a node of a product of matrices, `size` by `size`, computes, and what it gets and gives. */
export function matrixPart({ hardware }: Setup, size: number, nodes: number) {
  const rows = size / nodes
  return {
    computeUs: (rows * size * size * PRODUCT_CYCLES) / hardware.cpuMhz,
    // Its rows of the first matrix, and the whole second one.
    given: NUMBER_SIZE * (rows + size) * size,
    returned: NUMBER_SIZE * rows * size,
  }
}

/** Of a product of matrices: the first node gives out the work, takes its own part, and collects the results. */
export function matrixUs(setup: Setup, size: number, nodes: number): number {
  const network = networkOf(setup)
  const first = network.addHost()
  first.isPolling = setup.isPolling
  const { computeUs, given, returned } = matrixPart(setup, size, nodes)
  const programs: Program[] = []
  let sending = nodes - 1
  const beginUs = first.nowUs
  for (let node = 1; node < nodes; node++) {
    const worker = network.addHost()
    worker.isPolling = setup.isPolling
    const ends = openSimulatedPair(network, first, worker, QUEUE_SIZE)
    const [near, far] = openPorts(setup.layer, ends).map(port => new Program(port, setup)) as [
      Program,
      Program,
    ]
    programs.push(near, far)
    const give = function* (): Steps {
      yield* near.send(new Uint8Array(given))
      if (--sending === 0) first.charge(computeUs)
      yield* near.receive(new Uint8Array(returned), returned)
    }
    const work = function* (): Steps {
      yield* far.receive(new Uint8Array(given), given)
      worker.charge(computeUs)
      yield* far.send(new Uint8Array(returned))
    }
    runProgram(near.port.end, give())
    runProgram(far.port.end, work())
  }
  runToEnd(network)
  close(programs)
  return first.nowUs - beginUs
}

/** Of all messages of a stream of requests, the share that only returns credits. */
export function creditShare(hardware: Hardware, credits: number, requests: number): number {
  const network = new SimulatedNetwork({ seed: SEED, hardware })
  const ends = openSimulatedPair(network, network.addHost(), network.addHost(), QUEUE_SIZE)
  const handlerIndex = 1
  const [near, far] = ends.map(end => {
    const group = manualGroup()
    group.setHandler(handlerIndex, () => {})
    const channel = group.attach(end, { credits, owner: quietOwner(end) })
    return { end, group, channel }
  }) as [Sender, Sender]
  const send = function* (): Steps {
    for (let sent = 0; sent < requests; ) {
      if (near.channel.reserveRequest(handlerIndex, 0, 0) >= 0) {
        near.channel.commit(0)
        sent++
      } else if (near.channel.progress(1) <= 0) yield 0
    }
  }
  const receive = function* (): Steps {
    for (let handled = 0; handled < requests; ) {
      const count = far.channel.progress(1)
      if (count > 0) handled += count
      else yield 0
    }
  }
  runProgram(near.end, send())
  runProgram(far.end, receive())
  runToEnd(network)
  near.group.close()
  far.group.close()
  return (network.frameCount - requests) / network.frameCount
}

interface Sender {
  readonly end: SimulatedInterface
  readonly group: ReturnType<typeof manualGroup>
  readonly channel: ReturnType<ReturnType<typeof manualGroup>['attach']>
}

function close(programs: readonly Program[]): void {
  for (const { port } of programs) port.close()
}
