/** The adapter of this process: opened on first use, and again some time after its device was lost. */
import { constants } from 'node:os'
import { isMainThread } from 'node:worker_threads'
import { NicError } from '../errors.ts'
import { performance } from '../performance.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import { type ChosenDevice, chooseDevice, type NoDevice } from './device-choice.ts'
import { ACCESS_LOCAL_WRITE } from './library-layout.ts'
import { VerbsAdapter } from './verbs-adapter.ts'
import { loadVerbs, type VerbsLibrary } from './verbs-library.ts'

/** Time for which a lost device is not looked for: its port, or the device, may come back. */
export const LOST_MS = 5000

let found: VerbsAdapter | NoDevice | undefined
let triedAtMs = 0
let hadDevice = false

/**
 * The adapter, or why there is none. A process that starts without a device stays without: a device plugged in later
 * needs a new process. After a loss the device is looked for again; if the port's address has changed, new connections
 * use the new one.
 */
export function openAdapter(): VerbsAdapter | NoDevice {
  if (found === undefined || isOutdated(found) || performance.now() - goneSinceMs(found) > LOST_MS) {
    found = undisturbed(tryOpen)
    triedAtMs = performance.now()
    hadDevice ||= found instanceof VerbsAdapter
  }
  return found
}

/** The port has another address: open a new adapter at once. */
function isOutdated(known: VerbsAdapter | NoDevice): boolean {
  return known instanceof VerbsAdapter && known.isOutdated && known.lostReason === undefined
}

/** Infinity while there is no device to look for. */
function goneSinceMs(known: VerbsAdapter | NoDevice): number {
  if (known instanceof VerbsAdapter) return known.isClosed ? known.lostAtMs : Number.POSITIVE_INFINITY
  return hadDevice ? triedAtMs : Number.POSITIVE_INFINITY
}

/** The adapter that was already opened, if any; opens none. */
export function openedAdapter(): VerbsAdapter | undefined {
  return found instanceof VerbsAdapter ? found : undefined
}

export function requireAdapter(): VerbsAdapter {
  const found = openAdapter()
  if (found instanceof VerbsAdapter) return found
  throw new NicError('ERR_NIC_UNAVAILABLE', found.reason)
}

function tryOpen(): VerbsAdapter | NoDevice {
  // A terminated worker frees its memory, and the device would go on writing to it.
  if (!isMainThread) return { code: 'VERBS_THREAD', reason: 'RDMA is for the main thread only' }
  const { library, code, reason } = loadVerbs()
  if (library === undefined) return { code, reason }
  try {
    const chosen = chooseDevice(library)
    if (!('context' in chosen)) return chosen
    const opened = openDevice(library, chosen)
    return trial(opened) ?? opened
  } catch (error) {
    return { code: codeOfFailure(error as NicError), reason: (error as Error).message }
  }
}

function openDevice(library: VerbsLibrary, { context, port, manager }: ChosenDevice): VerbsAdapter {
  try {
    return new VerbsAdapter(library, context, port, manager)
  } catch (error) {
    manager?.close()
    library.ibv_close_device(context)
    throw error
  }
}

/** Some devices pin memory for every object that is made. */
function codeOfFailure({ code, errno }: NicError): string {
  if (code !== 'ERR_NIC_SYSTEM') return 'VERBS_ABI'
  return errno === constants.errno.ENOMEM ? 'VERBS_MEMLOCK' : 'VERBS_DEVICE'
}

/** Pins one page, so that a limit shows before a connection needs more. */
function trial(opened: VerbsAdapter): NoDevice | undefined {
  const page = new Uint8Array(new ArrayBuffer(4096))
  try {
    opened.deregister(opened.register(opened.verbs.libc.address(page), page.length, ACCESS_LOCAL_WRITE))
    return undefined
  } catch (error) {
    const reason = (error as Error).message
    opened.abandon(reason)
    return { code: 'VERBS_MEMLOCK', reason }
  }
}
