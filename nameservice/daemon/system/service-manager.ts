/** The interface to systemd: sd_notify(3), the watchdog, and passed sockets (sd_listen_fds(3)). */
import { loadPosix } from './posix.ts'

const FIRST_PASSED_FD = 3

/** Descriptors of listening sockets that the service manager passed. Removes them from the environment of children. */
export function passedSockets(env: NodeJS.ProcessEnv = process.env): number[] {
  const { LISTEN_PID, LISTEN_FDS } = env
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete env[name]
  if (LISTEN_PID !== String(process.pid)) return []
  const count = Number(LISTEN_FDS)
  return Number.isSafeInteger(count) && count > 0
    ? Array.from({ length: count }, (_, i) => FIRST_PASSED_FD + i)
    : []
}

export class ServiceManager {
  readonly #socket: string | undefined
  readonly #watchdogMs: number
  #watchdog: NodeJS.Timeout | undefined

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.#socket = env.NOTIFY_SOCKET || undefined
    const isOurs = env.WATCHDOG_PID === undefined || env.WATCHDOG_PID === String(process.pid)
    this.#watchdogMs = isOurs ? Number(env.WATCHDOG_USEC ?? 0) / 1000 : 0
  }

  /** False if a service manager expects notifications and the send failed. */
  notifyReady(status: string): boolean {
    const notified = this.#notify(`READY=1\nSTATUS=${status}\nMAINPID=${process.pid}`)
    if (this.#watchdogMs > 0) {
      this.#watchdog = setInterval(() => this.#notify('WATCHDOG=1'), this.#watchdogMs / 2).unref()
    }
    return notified
  }

  notifyStatus(status: string): void {
    this.#notify(`STATUS=${status}`)
  }

  notifyReloading(): void {
    const monotonicUs = process.hrtime.bigint() / 1000n
    this.#notify(`RELOADING=1\nMONOTONIC_USEC=${monotonicUs}`)
  }

  notifyReloaded(status: string): void {
    this.#notify(`READY=1\nSTATUS=${status}`)
  }

  notifyStopping(): void {
    clearInterval(this.#watchdog)
    this.#notify('STOPPING=1')
  }

  #notify(text: string): boolean {
    if (this.#socket === undefined) return true
    return loadPosix().posix?.sendDatagram(this.#socket, text) ?? false
  }
}
