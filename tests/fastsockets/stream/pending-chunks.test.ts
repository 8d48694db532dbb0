/** Copies of written bytes: the right ones, in memory that is never the program's. */
import t from 'tap'
import { PendingChunks } from '../../../fastsockets/stream/pending-chunks.ts'
import { FaultRandom } from '../../../nic/fault/fault-random.ts'

const PIECE = 64 * 1024

t.test(
  'any writes, sent in any parts: the same bytes, whatever the program does with its memory',
  async t => {
    const seed = Number(process.env.SEED ?? Date.now() % 1e9)
    t.comment(`SEED=${seed}`)
    const random = new FaultRandom(seed)
    const pending = new PendingChunks()
    let model = Buffer.alloc(0)
    let next = 0
    const send = (length: number): void => {
      const target = Buffer.alloc(length)
      pending.copyTo(target, 0, length)
      if (!target.equals(model.subarray(0, length))) t.fail('other bytes')
      model = model.subarray(length)
    }
    for (let step = 0; step < 3000; step++) {
      if (model.length < 8 * PIECE && random.chance(0.5)) {
        const lengths = [random.within(1, 100), random.within(1, 3 * PIECE), PIECE]
        const chunks = lengths.slice(random.within(0, 2)).map(length => {
          const chunk = new Uint8Array(length)
          for (let i = 0; i < length; i++) chunk[i] = next++ % 251
          return chunk
        })
        model = Buffer.concat([model, ...chunks])
        if (pending.length > 0) pending.add(chunks, Number.POSITIVE_INFINITY, random.chance(0.2))
        else {
          pending.set(chunks)
          if (random.chance(0.5)) send(random.within(1, Math.min(pending.length, 2 * PIECE)))
          if (pending.length > 0) pending.keep(Number.POSITIVE_INFINITY, random.chance(0.2))
        }
        for (const chunk of chunks) chunk.fill(255)
      } else if (pending.length > 0) send(random.within(1, Math.min(pending.length, 2 * PIECE)))
      if (pending.length !== model.length) t.fail(`${pending.length} bytes pending, of ${model.length}`)
      if (pending.length === 0) pending.clear()
    }
  },
)

t.test(
  'a stream copies into the memory of pieces that it has sent, and never into a chunk of the program',
  async t => {
    const pending = new PendingChunks()
    const program = new Uint8Array(PIECE)
    const memories = new Set<ArrayBufferLike>()
    for (let i = 0; i < 100; i++) {
      pending.set([program, program])
      pending.copyTo(new Uint8Array(PIECE), 0, PIECE)
      pending.keep(Number.POSITIVE_INFINITY, false)
      memories.add(pending.next(PIECE).buffer)
      pending.copyTo(new Uint8Array(PIECE), 0, PIECE)
      pending.clear()
    }
    t.notOk(memories.has(program.buffer))
    t.ok(memories.size <= 2, `${memories.size} pieces for 100 writes`)
  },
)
