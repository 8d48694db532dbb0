/** 1 GiB between two processes, in pieces of the longest long message, each with its checksum. */
import { createHash, randomFillSync } from 'node:crypto'
import type { Test } from 'tap'
import type { Endpoint } from '../../am/index.ts'
import { Child } from '../support/child.ts'
import { COPYING_PROCESS_DRIVER_LISTS, PROCESS_DRIVER_LISTS } from '../support/driver-lists.ts'
import { deliver } from '../support/endpoints.ts'
import { until } from '../support/until.ts'
import { testOver, type World } from '../support/world.ts'
import { ANSWER, ECHO, SINK } from './endpoint-questions.ts'

const GIB = 2 ** 30
/** Places for pieces that are under way; each is written again when its piece has been checked. */
const PLACES = 8
const fixture = new URL('./transfer-child.js', import.meta.url)
/** In parts everything is copied twice more: a quarter is enough to go round the queue a thousand times. */
const RUNS = [
  { lists: PROCESS_DRIVER_LISTS, size: GIB, what: '1 GiB' },
  { lists: COPYING_PROCESS_DRIVER_LISTS, size: GIB / 4, what: '256 MiB' },
] as const

function checksum(bytes: Uint8Array): string {
  return createHash('sha1').update(bytes).digest('hex')
}

/** Checksums of the peer by piece, as they come. */
function keepChecksums(endpoint: Endpoint): Map<number, string> {
  const checksums = new Map<number, string>()
  endpoint.setHandler(ANSWER, message => {
    const digest = Buffer.alloc(20)
    for (let i = 0; i < 5; i++) digest.writeInt32LE(message.word(1 + i), 4 * i)
    checksums.set(message.word(0), digest.toString('hex'))
  })
  return checksums
}

async function connect(t: Test, world: World): Promise<{ endpoint: Endpoint; piece: number }> {
  const endpoint = await world.open({ segment: PLACES * 4 * 2 ** 20, credits: PLACES })
  const piece = endpoint.limits.long
  const child = new Child(t, fixture, [world.list.name, String(PLACES * piece)])
  await endpoint.map(0, (await child.receive<{ name: string }>()).name)
  return { endpoint, piece }
}

for (const { lists, size, what } of RUNS) {
  testOver(lists, `${what} of long messages`, async (t, world) => {
    const { endpoint, piece } = await connect(t, world)
    const checksums = keepChecksums(endpoint)
    const content = randomFillSync(Buffer.alloc(piece))
    const expected: string[] = []
    const count = size / piece
    let sendingMs = 0
    for (let number = 0; number < count; number++) {
      await until('a place', () => number < PLACES || checksums.has(number - PLACES))
      // Every piece is another one, at both ends.
      content.writeUInt32LE(number, 0)
      content.writeUInt32LE(number, piece - 4)
      expected.push(checksum(content))
      const beginMs = performance.now()
      await deliver(endpoint, 0, () =>
        endpoint.requestLong(0, SINK, content, (number % PLACES) * piece, number),
      )
      sendingMs += performance.now() - beginMs
    }
    await until('the last checksum', () => checksums.size === count)
    t.ok(
      expected.every((digest, number) => digest === checksums.get(number)),
      'every piece is intact',
    )
    t.comment(`${(size / sendingMs / 1e6).toFixed(1)} GB/s within requestLong`)
  })

  testOver(lists, `${what} of gets`, async (t, world) => {
    const { endpoint, piece } = await connect(t, world)
    const checksums = keepChecksums(endpoint)
    const source = randomFillSync(Buffer.alloc(PLACES * piece))
    for (let place = 0; place < PLACES; place++) {
      const part = source.subarray(place * piece, (place + 1) * piece)
      await deliver(endpoint, 0, () => endpoint.requestLong(0, SINK, part, place * piece, -1 - place))
    }
    await until('the source', () => checksums.size === PLACES)
    const got = new Map<number, string>()
    endpoint.setHandler(SINK, message => got.set(message.word(0), checksum(message.payload())))
    const count = size / piece
    for (let number = 0; number < count; number++) {
      await until('a place', () => number < PLACES || got.has(number - PLACES))
      // Any 4 MiB from within, and not only those that were written.
      const offset = ((number * 37) % ((PLACES - 1) * 1024)) * 4096
      await deliver(endpoint, 0, () =>
        endpoint.get(0, SINK, offset, piece, (number % PLACES) * piece, number),
      )
      if (number % 16 === 0)
        await deliver(endpoint, 0, () => endpoint.request(0, ECHO, number, offset / 4096, piece))
    }
    await until('the last of them', () => got.size === count && checksums.size === PLACES + count / 16)
    const wrong = Array.from(got).filter(([number, digest]) => {
      const offset = ((number * 37) % ((PLACES - 1) * 1024)) * 4096
      return digest !== checksum(source.subarray(offset, offset + piece))
    })
    t.strictSame(wrong, [])
    t.ok(
      [...checksums].every(([number, digest]) => number < 0 || digest === got.get(number)),
      'as the peer says',
    )
  })
}
