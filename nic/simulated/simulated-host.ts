/**
 * A host of the simulated network: one CPU, a NIC, and a clock for the process that runs on it. The process is the
 * product's own code: it takes no time by itself, and is charged for what it does with the NIC.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Hardware } from './hardware.ts'
import type { Timeline, TimelineEvent } from './timeline.ts'

/** Shortest delay of Node's timers. */
const TIMER_US_MIN = 1000

export type HostState = 'running' | 'paused' | 'dead'

/** One stage of the way of frames: it handles packets one after another. */
export class Stage {
  freeAtUs = 0
}

/** The stages of one NIC, which the processes of a machine with several CPUs share. */
export class NicStages {
  /** The link between the machine and the switch is dead. */
  isLinkDead = false
  readonly sendBus = new Stage()
  readonly sendNic = new Stage()
  readonly sendWire = new Stage()
  readonly receiveWire = new Stage()
  readonly receiveNic = new Stage()
  readonly receiveBus = new Stage()
}

export class SimulatedHost {
  readonly number: number
  readonly hardware: Hardware
  readonly timeline: Timeline
  readonly clock: Clock
  state: HostState = 'running'
  /** The NIC neither sends nor receives. */
  isNicDead = false
  /** Frames leave no earlier: the NIC stalls. */
  stalledUntilUs = 0
  readonly nic: NicStages
  /** Interfaces that the process has not closed. */
  interfaceCount = 0
  /** The process polls while it waits: no interrupt. */
  isPolling = false
  /** CPU time that the process was charged. */
  usedUs = 0
  /** The process is busy until then. */
  #busyUntilUs = 0
  /** What the process has to do, in the order in which it came. */
  readonly #ready: (() => void)[] = []
  #isDue = false

  constructor(number: number, hardware: Hardware, timeline: Timeline, nic = new NicStages()) {
    this.number = number
    this.nic = nic
    this.hardware = hardware
    this.timeline = timeline
    this.clock = {
      now: () => this.nowUs / 1000,
      setTimeout: (listener, delayMs) => this.#setTimeout(listener, delayMs),
      clearTimeout: timer => (timer as VirtualTimer | undefined)?.cancel(),
      setImmediate: listener => this.post(hardware.turnUs, listener),
    }
  }

  /** Nothing reaches the process, and nothing that it sends arrives: its NIC or the link of its machine is dead. */
  get isCutOff(): boolean {
    return this.isNicDead || this.nic.isLinkDead
  }

  /** The process's time: it is ahead of the network while the process is busy. */
  get nowUs(): number {
    return Math.max(this.timeline.nowUs, this.#busyUntilUs)
  }

  /** The process is busy for so long. */
  charge(us: number): void {
    this.#busyUntilUs = this.nowUs + us
    this.usedUs += us
  }

  /** Work of the process itself, in cycles of its CPU. */
  chargeCycles(cycles: number): void {
    this.charge(cycles / this.hardware.cpuMhz)
  }

  /** A copy within the memory of the process. */
  chargeCopy(length: number): void {
    this.charge(this.hardware.copyUsPerByte * length)
  }

  chargeSystemCall(): void {
    this.charge(this.hardware.systemCallUs)
  }

  /** From the moment when a frame lies in memory until a waiting process sees it. */
  get wakeUs(): number {
    return this.isPolling ? this.hardware.pollUs : this.hardware.wakeUs
  }

  /** The process spins until then. */
  spinUntil(timeUs: number): void {
    if (timeUs > this.nowUs) this.charge(timeUs - this.nowUs)
  }

  /** Runs `job` on this host's CPU after that time, as soon as the CPU is free. */
  post(delayUs: number, job: () => void): TimelineEvent {
    return this.timeline.schedule(this.nowUs + delayUs, () => {
      if (this.state === 'dead') return
      this.#ready.push(job)
      this.#work()
    })
  }

  pause(): void {
    if (this.state === 'running') this.state = 'paused'
  }

  resume(): void {
    if (this.state !== 'paused') return
    this.state = 'running'
    this.#workAt(0)
  }

  /** The process ends without another instruction. */
  kill(): void {
    this.state = 'dead'
    this.#ready.length = 0
  }

  /** Runs what is ready, one job after another, each as soon as the CPU is free. */
  #work(): void {
    while (this.state === 'running' && !this.#isDue) {
      if (this.#ready.length === 0) return
      if (this.#busyUntilUs > this.timeline.nowUs) return this.#workAt(this.#busyUntilUs)
      ;(this.#ready.shift() as () => void)()
    }
  }

  #workAt(timeUs: number): void {
    if (this.#isDue) return
    this.#isDue = true
    this.timeline.schedule(timeUs, () => {
      this.#isDue = false
      this.#work()
    })
  }

  #setTimeout(listener: () => void, delayMs: number): Timer {
    const timer = new VirtualTimer()
    this.post(Math.max(TIMER_US_MIN, delayMs * 1000), () => {
      if (timer.isCancelled) return
      timer.isCancelled = true
      this.timeline.hasSettled = true
      listener()
    })
    return timer
  }
}

/** Virtual time has no event loop to keep alive. */
class VirtualTimer implements Timer {
  isCancelled = false

  cancel(): void {
    this.isCancelled = true
  }

  ref(): void {}

  unref(): void {}
}
