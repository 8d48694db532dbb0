/**
 * A small Node program as a child process. It prints one JSON value per line. A server ends when its standard input
 * ends, which also happens when this process dies.
 */
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { withDeadline } from './deadline.ts'

/** How much of a program's error output is shown when it fails. */
const COMPLAINT_LENGTH_MAX = 2000
const STOP_TIMEOUT_MS = 5000

const running = new Set<ChildProcess>()

export class ChildProgram {
  readonly #name: string
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #lines: AsyncIterator<string>
  /** The error of a program that failed; undefined otherwise. */
  readonly #failure: Promise<string | undefined>
  #complaint = ''

  /** `via`: a command with arguments that starts the program, as `ip netns exec`. */
  static start(
    name: string,
    script: URL,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    via: readonly string[] = [],
  ): ChildProgram {
    killAllAtExit()
    const [command = '', ...rest] = [...via, process.execPath, fileURLToPath(script), ...args]
    // Detached, so that Ctrl-C in a terminal reaches this process only, which ends everything in order.
    const child = spawn(command, rest, {
      env,
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    })
    return new ChildProgram(name, child)
  }

  private constructor(name: string, child: ChildProcessByStdio<Writable, Readable, Readable>) {
    this.#name = name
    this.#child = child
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    running.add(child)
    // EPIPE after the program's end is expected: its exit is reported.
    child.stdin.on('error', () => {})
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#complaint = (this.#complaint + text).slice(-COMPLAINT_LENGTH_MAX)
    })
    this.#failure = new Promise(resolve => {
      child.once('error', error => resolve(`could not be started: ${error.message}`))
      child.once('close', (code, signal) => {
        running.delete(child)
        resolve(code === 0 ? undefined : describeEnd(code, signal))
      })
    })
  }

  /** The next value that it prints. */
  async receive<T>(timeoutMs: number): Promise<T> {
    const next = await this.#within(timeoutMs, this.#lines.next())
    if (next.done) throw await this.#error()
    return JSON.parse(next.value) as T
  }

  /** Writes a line of JSON to its standard input. */
  send(value: object): void {
    this.#child.stdin.write(`${JSON.stringify(value)}\n`)
  }

  /** Ends its standard input, and waits for its exit. */
  async stop(timeoutMs = STOP_TIMEOUT_MS): Promise<void> {
    this.#child.stdin.end()
    const failure = await this.#within(timeoutMs, this.#failure)
    if (failure !== undefined) throw await this.#error()
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  async #within<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
    try {
      return await withDeadline(promise, timeoutMs, `${this.#name} said nothing for ${timeoutMs / 1000} s`)
    } catch (error) {
      this.kill()
      throw error
    }
  }

  async #error(): Promise<Error> {
    const failure = (await this.#failure) ?? 'ended before it was done'
    const complaint = this.#complaint.trim()
    return new Error(`${this.#name} ${failure}${complaint === '' ? '' : `:\n${complaint}`}`)
  }
}

function describeEnd(code: number | null, signal: NodeJS.Signals | null): string {
  return signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`
}

let killsAtExit = false

function killAllAtExit(): void {
  if (killsAtExit) return
  killsAtExit = true
  process.on('exit', () => {
    for (const child of running) child.kill('SIGKILL')
  })
}
