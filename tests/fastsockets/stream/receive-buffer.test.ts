/** The receive buffer against a model: one array of all unread bytes. */
import t from 'tap'
import { ReceiveBuffer } from '../../../fastsockets/stream/receive-buffer.ts'
import { FaultRandom } from '../../../nic/fault/fault-random.ts'

const STEPS = 20_000
const READ_MAX = 64 * 1024
/** What a socket keeps at most. */
const UNREAD_MAX = 4 << 20

const counts = { kept: 0, allocated: 0 }
const open = (): ReceiveBuffer =>
  new ReceiveBuffer(
    {
      allocate: length => {
        counts.allocated += length
        return Buffer.alloc(length)
      },
    },
    {
      noteKept: length => {
        counts.kept += length
      },
    },
  )

t.beforeEach(() => {
  counts.kept = 0
  counts.allocated = 0
})

t.test('any appends and reads: the same bytes in the same order', async t => {
  const seed = Number(process.env.SEED ?? Date.now() % 1e9)
  t.comment(`SEED=${seed}`)
  const random = new FaultRandom(seed)
  const buffer = open()
  let model = Buffer.alloc(0)
  let next = 0
  const fresh = (length: number): Buffer => {
    const bytes = Buffer.alloc(length)
    for (let i = 0; i < length; i++) bytes[i] = next++ % 251
    return bytes
  }
  const expect = (bytes: Uint8Array, what: string): void => {
    if (!model.subarray(0, bytes.length).equals(bytes)) t.fail(`${what} has other bytes`)
    model = model.subarray(bytes.length)
  }
  for (let step = 0; step < STEPS; step++) {
    const lengthMax = random.chance(0.2) ? 2 * READ_MAX : 3000
    const dice = model.length > 8 * READ_MAX ? random.within(3, 6) : random.within(0, 6)
    if (dice === 0) {
      const bytes = fresh(random.within(1, lengthMax))
      model = Buffer.concat([model, bytes])
      buffer.append(Buffer.concat([Buffer.alloc(7), bytes]), 7, bytes.length)
    } else if (dice <= 2) {
      const bytes = fresh(random.chance(0.3) ? READ_MAX : random.within(1, lengthMax))
      model = Buffer.concat([model, bytes])
      buffer.appendOwn(Buffer.from(bytes))
    } else if (dice === 3 && buffer.length > 0) {
      const bytes = buffer.read()
      if (bytes.byteOffset !== 0 || bytes.buffer.byteLength !== bytes.length) t.fail('memory of its own')
      expect(bytes, 'read')
    } else if (dice === 4) {
      const target = Buffer.alloc(random.within(1, lengthMax))
      expect(target.subarray(0, buffer.readInto(target)), 'readInto')
    } else if (dice === 5 && buffer.length > 0) {
      const bytes = buffer.peek()
      const taken = random.within(0, bytes.length)
      const copy = Buffer.from(bytes.subarray(0, taken))
      buffer.skip(taken)
      expect(copy, 'peek')
    } else if (dice === 6 && random.chance(0.01)) {
      buffer.clear()
      model = Buffer.alloc(0)
    }
    if (buffer.length !== model.length || counts.kept !== model.length) {
      t.fail(`step ${step}: ${buffer.length} bytes, ${counts.kept} counted, of ${model.length}`)
      break
    }
  }
  while (buffer.length > 0) expect(buffer.read(), 'the rest')
  t.equal(model.length, 0)
})

t.test('what comes in full pieces is neither moved nor copied again, however much is unread', async t => {
  const buffer = open()
  const bytes = Buffer.alloc(READ_MAX, 1)
  for (let length = 0; length < UNREAD_MAX; length += READ_MAX) buffer.append(bytes, 0, READ_MAX)
  t.ok(counts.allocated <= UNREAD_MAX, 'memory for what is unread')
  for (let i = 0; i < 1000; i++) {
    t.equal(buffer.read().length, READ_MAX)
    buffer.append(bytes, 0, READ_MAX)
  }
  t.ok(counts.allocated <= UNREAD_MAX + 1000 * READ_MAX, 'one piece for each')
  const own = Buffer.from(bytes)
  buffer.clear()
  buffer.appendOwn(own)
  t.equal(buffer.read(), own)
  t.equal(counts.kept, 0)
})

t.test('little that arrives takes little memory, and all that waits is one read', async t => {
  const buffer = open()
  for (let i = 0; i < 100; i++) {
    buffer.append(Buffer.from('ab'), 0, 2)
    buffer.append(Buffer.from('c'), 0, 1)
    t.equal(String(buffer.read()), 'abc')
  }
  t.equal(counts.allocated, 16 * 1024 + 100 * 3)
})
