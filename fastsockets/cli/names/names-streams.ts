/** The parts of `fastsockets names` that last until they are interrupted. */
import type {
  NameClient,
  NameEvent,
  NewRegistration,
  RegistrationOptions,
} from '../../../nameservice/index.ts'
import { shownJson, shownText } from '../../../nic/shown-text.ts'
import { printRegistered } from './names-tables.ts'

const HINT_MS = 1000

/** Prints every change. Rejects if the daemon refuses. */
export async function followNames(
  client: NameClient,
  prefix: string,
  after: string | undefined,
  isJson: boolean,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const watching = client.watch$(prefix, after === undefined ? {} : { after }).subscribe({
      next: event => printEvent(event, isJson),
      error: reject,
    })
    onInterrupt(() => {
      watching.unsubscribe()
      resolve()
    })
  })
}

/** Keeps the name registered. Rejects if it is refused, or lost to another owner. */
export async function holdName(
  client: NameClient,
  wanted: NewRegistration,
  options: RegistrationOptions,
  isJson: boolean,
): Promise<void> {
  // The client's background work keeps no program alive.
  const alive = setInterval(() => {}, 2 ** 30)
  const hint = setTimeout(() => process.stderr.write('waiting for the name service\n'), HINT_MS)
  try {
    await new Promise<void>((resolve, reject) => {
      const registration = client.register(wanted, {
        ...options,
        onState: (state, problem) => {
          if (state === 'pending')
            process.stderr.write(`waiting: ${shownText(problem?.detail ?? 'the daemon is away')}\n`)
          // Possible also after a registration, for example under a lease that has ended.
          if (state === 'refused') reject(new Error(problem?.detail ?? `${wanted.name} is refused`))
          if (state === 'lost') reject(new Error(`${wanted.name} was taken over by another owner`))
        },
      })
      registration.registered.then(entry => {
        clearTimeout(hint)
        printRegistered(entry, isJson)
      }, reject)
      onInterrupt(resolve)
    })
  } finally {
    clearInterval(alive)
    clearTimeout(hint)
  }
}

function printEvent(event: NameEvent, isJson: boolean): void {
  if (isJson) return void process.stdout.write(`${shownJson(event)}\n`)
  switch (event.type) {
    case 'put':
      return void process.stdout.write(
        `${event.revision}  put     ${shownText(event.name)}  ${shownText(event.record.endpoint)}\n`,
      )
    case 'delete':
      return void process.stdout.write(`${event.revision}  delete  ${shownText(event.name)}\n`)
    case 'reset':
      return void process.stderr.write('changes were missed: list the names anew\n')
    case 'up':
      return void process.stderr.write('watching\n')
  }
}

function onInterrupt(handle: () => void): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, handle)
}
