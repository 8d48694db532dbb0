/** Active messages between two hosts: an endpoint that has published its name on one, and one that maps it on the other. */
import { createHash } from 'node:crypto'
import { type Endpoint, openEndpoint } from '../../../am/index.ts'
import { patternedMiB } from '../patterned.ts'

const NAME = 'guests/echo'
const TAG = 0x1234n
const MIB = 1024 * 1024
const ECHO = 1
const SUM = 2
const WHO = 3
const ANSWER = 4
const FETCHED = 5
const PUT = 6
const CREDITS = 8

type Check = (what: string, holds: boolean) => void

/** `hidden` has no published name. */
export async function serveEndpoints(): Promise<void> {
  const hidden = await openEndpoint()
  const echo = await openEndpoint({ name: NAME, tag: TAG, segment: MIB, credits: CREDITS })
  echo.setHandler(ECHO, message => message.replyMedium(ANSWER, message.copy(), message.word(0)))
  echo.setHandler(PUT, () => {})
  echo.setHandler(SUM, message => message.replyMedium(ANSWER, sumOf(echo.segment)))
  echo.setHandler(WHO, message => message.replyMedium(ANSWER, Buffer.from(hidden.name)))
}

export async function callEndpoints(check: Check): Promise<Endpoint> {
  const endpoint = await openEndpoint({ segment: MIB })
  await endpoint.map(0, NAME)
  check('an endpoint of another host is found by name', endpoint.stats().peers[0]?.driver === 'verbs')
  const bytes = patternedMiB(9)
  const small = bytes.subarray(0, 5000)
  let isSame = true
  for (let i = 0; i < 4 * CREDITS; i++) {
    const reply = await endpoint.call(0, ECHO, small, [i])
    isSame &&= reply.word(0) === i && reply.payload().equals(small)
  }
  check('and answers', isSame)
  endpoint.requestLong(0, PUT, bytes.subarray(0, MIB / 2), 0)
  await endpoint.ready(0)
  endpoint.requestLong(0, PUT, bytes.subarray(MIB / 2), MIB / 2)
  await endpoint.ready(0)
  check('a long message arrives in its segment', (await endpoint.call(0, SUM)).payload().equals(sumOf(bytes)))
  const fetched = new Promise<void>(resolve => endpoint.setHandler(FETCHED, () => resolve()))
  endpoint.get(0, FETCHED, 0, MIB, 0)
  await fetched
  check('a get brings it back', sumOf(endpoint.segment).equals(sumOf(bytes)))
  await refusals(endpoint, check)
  return endpoint
}

async function refusals(endpoint: Endpoint, check: Check): Promise<void> {
  const hidden = (await endpoint.call(0, WHO)).payload().toString()
  check(
    'an endpoint without a published name is not reached',
    (await codeOf(endpoint.map(1, hidden))) === 'ERR_AM_UNREACHABLE',
  )
  await endpoint.map(2, NAME, TAG + 1n)
  const returned = returnedReason(endpoint)
  endpoint.request(2, ECHO)
  check('who shows another tag is not heard', (await returned) === 'BAD_TAG')
}

/** When the other host has lost its device; what is sent then comes back. */
export async function checkDead(endpoint: Endpoint, check: Check): Promise<void> {
  const returned = returnedReason(endpoint)
  endpoint.request(0, ECHO)
  check('what is sent to a lost endpoint comes back', (await returned) === 'PEER_DEAD')
}

/** When it has one again. */
export async function checkBack(endpoint: Endpoint, check: Check): Promise<void> {
  await endpoint.map(0, NAME)
  const reply = await endpoint.call(0, ECHO, undefined, [5])
  check('and is reached again when the device is back', reply.word(0) === 5)
}

function returnedReason(endpoint: Endpoint): Promise<string | undefined> {
  return new Promise(resolve => endpoint.setHandler(0, message => resolve(message.reason)))
}

async function codeOf(promise: Promise<unknown>): Promise<string | undefined> {
  return await promise.then(
    () => undefined,
    error => error.code,
  )
}

function sumOf(bytes: Uint8Array): Buffer {
  return createHash('md5').update(bytes).digest()
}
