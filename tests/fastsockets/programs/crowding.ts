/**
 * Calls a hashed port repeatedly, and keeps every call open: `silent`, or sending HELLO as the given user. Or `door`: keeps the
 * backlog of the server's door full.
 */
import { randomBytes } from 'node:crypto'
import net, { type Socket } from 'node:net'
import {
  decodeIntroduction,
  encodeIntroduction,
  GREETING_MAGIC,
  HELLO_MAGIC,
  INTRODUCTION_SIZE,
} from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { doorPath } from '../../../fastsockets/bootstrap/door.ts'

const [port, how, uid] = process.argv.slice(2)
/** As many are open at a time. */
const CALLERS = 400
/** Calls that are made before the test goes on. */
const CALLS = 600
/** More than a backlog holds. */
const KNOCKS = 600

let calls = 0
let isTold = false
const callers: Socket[] = []

function call(): void {
  const caller = net.connect(Number(port), '127.0.0.1')
  caller.on('error', () => {})
  caller.once('connect', () => {
    if (how === 'door') return
    if (++calls === CALLS) process.send?.({ calls })
    callers.push(caller)
    if (callers.length > CALLERS) callers.shift()?.destroy()
    setImmediate(call)
  })
  if (how === 'silent') return
  let heard = Buffer.alloc(0)
  caller.on('data', bytes => {
    heard = Buffer.concat([heard, bytes])
    const greeting = heard.length === INTRODUCTION_SIZE && decodeIntroduction(GREETING_MAGIC, heard)
    if (greeting && how === 'door') knock(doorPath(greeting.door))
    else if (greeting)
      caller.write(
        encodeIntroduction(HELLO_MAGIC, { ...greeting, uid: Number(uid), endpointId: randomBytes(16) }),
      )
  })
}

function knock(path: string): void {
  for (let i = 0; i < KNOCKS; i++) {
    const caller = net.connect({ path })
    caller.on('error', () => {})
    caller.on('connect', () => {
      calls++
      caller.destroy()
    })
  }
  if (calls >= CALLS && !isTold) process.send?.({ calls })
  isTold ||= calls >= CALLS
  setImmediate(knock, path)
}

call()
