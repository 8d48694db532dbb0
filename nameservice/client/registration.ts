/** One name that a program registers. */
import { queueMicrotask } from '../../nic/real-time.ts'
import type { Problem } from '../problem.ts'
import type { Entry, NewRecord } from '../record.ts'
import type { NameError } from './errors.ts'
import type { RegisterOptions } from './name-api.ts'

/**
 * `pending`: not registered yet, or no longer because the daemon was gone; it is retried. `refused`: the daemon refuses
 * it; no further try. `lost`: it was registered, and then removed or taken over by another owner; if a late request of
 * this client brings it back, it is `registered` again.
 */
export type RegistrationState = 'pending' | 'registered' | 'refused' | 'lost' | 'closed'

export interface NewRegistration extends NewRecord {
  readonly name: string
}

export interface RegistrationOptions extends RegisterOptions {
  /** Called after every change of `state`. */
  readonly onState?: (state: RegistrationState, problem: Problem | undefined) => void
}

export class Registration {
  readonly name: string
  readonly record: NewRecord
  readonly options: RegistrationOptions
  /** The first registration; rejects if it is refused or closed before that. It may be ignored. */
  readonly registered: Promise<Entry>
  /**
   * Resolves after the first question to the daemon, whatever its result, or when the daemon is known to be unreachable.
   */
  readonly tried: Promise<void>
  readonly #close: (registration: Registration) => Promise<void>
  #succeed: (entry: Entry) => void = () => {}
  #fail: (error: Error) => void = () => {}
  #handleTried: () => void = () => {}
  #state: RegistrationState = 'pending'
  #problem: Problem | undefined
  #entry: Entry | undefined

  constructor(
    { name, ...record }: NewRegistration,
    options: RegistrationOptions,
    close: (registration: Registration) => Promise<void>,
  ) {
    this.name = name
    this.record = record
    this.options = options
    this.#close = close
    this.registered = new Promise((succeed, fail) => {
      this.#succeed = succeed
      this.#fail = fail
    })
    this.registered.catch(() => {})
    this.tried = new Promise(resolve => {
      this.#handleTried = resolve
    })
  }

  get state(): RegistrationState {
    return this.#state
  }

  /** The entry as last registered. */
  get entry(): Entry | undefined {
    return this.#entry
  }

  /** Why the daemon refused it last. */
  get problem(): Problem | undefined {
    return this.#problem
  }

  /** Releases the name; resolves when the daemon knows, or cannot be reached: then the name ends with its lease. */
  close(): Promise<void> {
    return this.#close(this)
  }

  handleTried(): void {
    this.#handleTried()
  }

  handleRegistered(entry: Entry): void {
    this.#entry = entry
    this.#enter('registered', undefined)
    this.#succeed(entry)
    this.handleTried()
  }

  handleRefused(error: NameError): void {
    this.#enter('refused', error.problem)
    this.#fail(error)
    this.handleTried()
  }

  /** It is retried; `problem` is the reason of this failure. */
  handlePending(problem?: Problem): void {
    this.#enter('pending', problem)
  }

  handleLost(): void {
    this.#enter('lost', undefined)
  }

  handleClosed(error: NameError): void {
    this.#enter('closed', undefined)
    this.#fail(error)
    this.handleTried()
  }

  #enter(state: RegistrationState, problem: Problem | undefined): void {
    // A question that was under way at the close changes nothing.
    if (this.#state === 'closed' || (this.#state === state && this.#problem === problem)) return
    this.#state = state
    this.#problem = problem
    const { onState } = this.options
    // An exception of the callback is the program's own.
    if (onState !== undefined) queueMicrotask(() => onState(state, problem))
  }
}
