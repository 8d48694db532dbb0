/** One name that a program wants to have. */
import { queueMicrotask } from '../../nic/real-time.ts'
import type { Problem } from '../problem.ts'
import type { Entry, NewRecord } from '../record.ts'
import type { NameError } from './errors.ts'
import type { RegisterOptions } from './name-api.ts'

/**
 * `pending`: not registered yet, or not any more because the daemon was gone; it is seen to.
 * `refused`: the daemon does not want it, and it will not be tried again.
 * `lost`: it was registered, and then somebody else removed it or took it over.
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
  /** The first time that it is registered; rejects if it is refused or closed before that. Nobody has to wait for it. */
  readonly registered: Promise<Entry>
  /** Resolves when the daemon was asked for the first time, whatever came of it, or is known not to be there. */
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

  /** As it was registered last. */
  get entry(): Entry | undefined {
    return this.#entry
  }

  /** Why the daemon refused it the last time. */
  get problem(): Problem | undefined {
    return this.#problem
  }

  /** Gives the name back; resolves when the daemon knows, or cannot be told: then the name goes with its lease. */
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

  /** It is tried again; `problem` is why it did not work this time. */
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
    // What was under way when it was closed changes nothing any more.
    if (this.#state === 'closed' || (this.#state === state && this.#problem === problem)) return
    this.#state = state
    this.#problem = problem
    const { onState } = this.options
    // What it throws is the program's own affair.
    if (onState !== undefined) queueMicrotask(() => onState(state, problem))
  }
}
