/** The other process of shm-two-processes.test.ts: takes up an offer, echoes every frame, and does what it is asked. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  type Driver,
  drivers,
  type MemoryOptions,
  NO_RESOURCE,
  type Registration,
  type VirtualInterface,
} from '../../nic/index.ts'
import { CompletionLog, fillPattern, Handler, patterned, sendFrame } from '../support/frames.ts'
import { REACH } from '../support/placement.ts'

export type Question =
  | ({ readonly ask: 'connect'; readonly blob: string; readonly allowEverybody?: boolean } & MemoryOptions)
  | { readonly ask: 'echo' }
  | { readonly ask: 'register'; readonly length: number; readonly access: Registration['access'] }
  | { readonly ask: 'show' }
  | { readonly ask: 'send'; readonly count: number; readonly length: number }
  | { readonly ask: 'flood'; readonly length: number }
  | { readonly ask: 'read'; readonly key: string }
  | { readonly ask: 'close' }

let end: VirtualInterface | undefined
let registration: Registration | undefined

process.on('message', (question: Question) => {
  answer(question).then(
    message => process.send?.(message),
    error => process.send?.({ error: { name: error.name, code: error.code, message: error.message } }),
  )
})

async function answer(question: Question): Promise<object> {
  if (question.ask === 'connect') {
    const { sharesMemory = false, readsPeer = false } = question
    const allowUid = question.allowEverybody && { allowUid: () => true }
    const options = { ...allowUid, sharesMemory, readsPeer, ...REACH }
    end = await requireDriver().connect(Buffer.from(question.blob, 'base64'), options)
    return { capabilities: end.capabilities, uid: process.getuid?.() }
  }
  if (end === undefined) throw new Error('not connected')
  switch (question.ask) {
    case 'echo':
      new Echo(end).run()
      return {}
    case 'register':
      registration = end.register(memoryFor(end, question.length, question.access), question.access)
      return { key: Buffer.from(registration.key).toString('base64') }
    case 'show':
      return { bytes: Buffer.from(registration?.bytes ?? []).toString('base64') }
    case 'send':
      for (let i = 0; i < question.count; i++) sendFrame(end, patterned(question.length, i))
      return {}
    case 'flood':
      return await flood(end, question.length)
    case 'read':
      return readOneSided(end, Buffer.from(question.key, 'base64'))
    case 'close':
      end.close()
      process.disconnect()
      return {}
  }
}

/** Memory that peers can map, unless they read this process anyway. */
function memoryFor(end: VirtualInterface, length: number, access: Registration['access']): Uint8Array {
  try {
    end.register(new Uint8Array(1), access).deregister()
    return patterned(length, 3)
  } catch {
    const memory = requireDriver().allocate?.(length, access.remoteWrite)
    return fillPattern(memory ?? new Uint8Array(length), 3)
  }
}

/** Sends numbered frames for as long as this process lives. */
async function flood(end: VirtualInterface, length: number): Promise<never> {
  for (let i = 0; ; ) {
    if (sendFrame(end, patterned(length, i)) === NO_RESOURCE) await nextTurn()
    else i++
  }
}

function readOneSided(end: VirtualInterface, key: Buffer): object {
  const remote = end.importKey(key)
  const local = end.register(new Uint8Array(remote.length), { remoteRead: false, remoteWrite: false })
  const log = new CompletionLog()
  const status = end.rdmaRead(local, 0, remote, 0, remote.length, 5)
  end.pollCompletions(log, 1)
  return { status, completions: log.completions, bytes: Buffer.from(local.bytes).toString('base64') }
}

/** Everything comes back in order; sleeps whenever there is neither a frame to take nor room to give it back. */
class Echo {
  readonly #end: VirtualInterface
  readonly #waiting: Buffer[] = []

  constructor(end: VirtualInterface) {
    this.#end = end
    end.ref()
    end.setDoorbell(() => this.run())
  }

  run(): void {
    const sink = new Handler(content => {
      this.#waiting.push(Buffer.from(content))
    })
    do {
      this.#end.poll(sink, 64)
      this.#sendBack()
    } while (this.#end.state === 'open' && !this.#end.arm(this.#waiting[0]?.length ?? 0))
  }

  #sendBack(): void {
    for (;;) {
      const frame = this.#waiting[0]
      if (frame === undefined || sendFrame(this.#end, frame) < 0) return
      this.#waiting.shift()
    }
  }
}

function requireDriver(): Driver {
  const driver = drivers.get('shm')
  if (driver === undefined) throw new Error('no driver shm')
  return driver
}
