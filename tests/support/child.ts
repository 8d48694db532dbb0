import { type ChildProcess, type ForkOptions, fork } from 'node:child_process'
import { once } from 'node:events'
import { deathbound } from './deathbound.ts'
import { areApart, otherSide, programOf } from './placement.ts'
import { withWatchdog } from './until.ts'

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** The environment without what the test runner adds to it, which would slow every child's start. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _, ...environment } = process.env
  return environment
}

/** A forked fixture that talks with JSON messages, one answer to each question. */
export class Child {
  readonly process: ChildProcess
  /** Once it is gone and all is read that it has written: what ended with it may come after its 'exit'. */
  readonly exited: Promise<Exit>
  readonly #inbox: unknown[] = []
  #hasEnded = false
  #stderr = ''
  #waiting: (() => void) | undefined

  /** `fixture` is the compiled file as a URL; the child is killed at the latest when the test ends, or the test's process. */
  constructor(
    t: { teardown(end: () => Promise<void>): void },
    fixture: URL,
    args: readonly string[] = [],
    options: ForkOptions = {},
  ) {
    const placed = otherSide(options)
    const node = [placed.execPath ?? process.execPath, ...(placed.execArgv ?? [])]
    const [execPath, ...execArgv] = deathbound('KILL', node)
    this.process = fork(fixture, args, {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      env: plainEnvironment(),
      ...placed,
      execPath,
      // Not those of this process, which are the test runner's loaders: they are slow, and warn on a new Node.
      execArgv,
    })
    if (areApart) this.#signalProgram()
    this.process.stderr?.setEncoding('utf8').on('data', text => {
      this.#stderr += text
    })
    this.process.on('message', message => {
      this.#inbox.push(message)
      this.#waiting?.()
    })
    const ends = Promise.all([once(this.process, 'close'), once(this.process, 'disconnect')])
    this.exited = ends.then(([[code, signal]]) => {
      this.#hasEnded = true
      this.#waiting?.()
      return { code, signal }
    })
    // Its descriptors in this process are gone as well then: the next test may count.
    t.teardown(async () => {
      this.process.kill('SIGKILL')
      await this.exited
    })
  }

  /** In a container: not `unshare` gets the signals, which stays outside. */
  #signalProgram(): void {
    const { kill } = this.process
    this.process.kill = signal => {
      if (signal !== 'SIGKILL') return process.kill(this.pid, signal)
      return kill.call(this.process, signal)
    }
  }

  get pid(): number {
    return programOf(this.process.pid as number)
  }

  /** What the child has written to its standard error so far. */
  get stderr(): string {
    return this.#stderr
  }

  send(message: object): void {
    this.process.send(message)
  }

  /** The child's next message. */
  async receive<T>(): Promise<T> {
    while (this.#inbox.length === 0) {
      if (this.#hasEnded) {
        throw new Error(`the child ended without an answer: ${this.#stderr}`)
      }
      await withWatchdog(
        'a message from the child',
        new Promise<void>(resolve => {
          this.#waiting = resolve
        }),
      )
    }
    return this.#inbox.shift() as T
  }

  ask<T>(message: object): Promise<T> {
    this.send(message)
    return this.receive<T>()
  }

  async kill(): Promise<Exit> {
    this.process.kill('SIGKILL')
    return await this.exited
  }

  /** How the child ended by itself. */
  end(): Promise<Exit> {
    return withWatchdog('the end of the child', this.exited)
  }
}
