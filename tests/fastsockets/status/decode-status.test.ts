/** A status page is a stranger's input: whatever stands in it, it is read without harm. */
import t from 'tap'
import { decodeStatus, type ThreadStatus } from '../../../fastsockets/status/decode-status.ts'
import {
  BYTES_IN,
  BYTES_TAKEN,
  DATAGRAMS,
  DROPPED,
  HEADER,
  HEADER_SIZE,
  PAGE_SIZE,
  PEER_TAKEN,
  PROGRAM_AT,
  ROW_SIZE,
  ROWS_MAX,
} from '../../../fastsockets/status/status-layout.ts'
import { StatusPage } from '../../../fastsockets/status/status-page.ts'
import { StreamCounts } from '../../../fastsockets/status/stream-counts.ts'
import { seededRandom } from '../../support/random.ts'

const ROUNDS = 2000

/** As a stream counts on each message. */
function add({ words }: StreamCounts, word: number, count: number): void {
  words[word] = (words[word] as number) + count
}

function somePage(): Buffer {
  const page = new StatusPage(new ArrayBuffer(PAGE_SIZE))
  page.open({ kind: 'listener', transport: 'shm', role: 'server', local: { address: '::', port: 80 } })
  page.open({ kind: 'net', transport: 'shm', role: 'client', remote: { address: '127.0.0.1', port: 80 } })
  page.open({
    kind: 'tcp',
    transport: 'pipe',
    role: 'client',
    reason: 'PIPE',
    remote: { address: '/x', port: 0 },
  })
  return Buffer.from(page.image)
}

t.test('what was put on a page is read from it', async t => {
  t.match(decodeStatus(somePage()), {
    listeners: [{ local: '[::]:80' }],
    sockets: [
      { transport: 'shm', role: 'client', remote: '127.0.0.1:80', bytesIn: 0 },
      { transport: 'pipe', reason: 'PIPE', remote: '/x' },
    ],
    opened: 2,
  })
})

t.test('a row is free for others once it is closed, and its counts are kept in the sums', async t => {
  const page = new StatusPage(new ArrayBuffer(PAGE_SIZE))
  const row = page.open({ kind: 'net', transport: 'shm', role: 'client' })
  row.counts[0] = 7
  row.close()
  row.close()
  row.counts[0] = 1000
  t.match(decodeStatus(Buffer.from(page.image)), { sockets: [], bytesIn: 7, opened: 1 })
  page.open({ kind: 'raw', transport: 'shm', role: 'server' })
  t.match(decodeStatus(Buffer.from(page.image)), {
    sockets: [{ row: 0, kind: 'raw', bytesIn: 0 }],
    opened: 2,
  })
})

t.test('a socket that finds no room on the page is in the sums once it is closed', async t => {
  const page = new StatusPage(new ArrayBuffer(PAGE_SIZE))
  const row = { kind: 'net', transport: 'shm', role: 'client' } as const
  for (let i = 0; i < ROWS_MAX; i++) page.open(row)
  for (const kind of ['net', 'tcp', 'listener'] as const) {
    const beyond = page.open({ ...row, kind })
    t.notOk(beyond.isShown)
    beyond.counts[0] = 7
    beyond.close()
    beyond.close()
  }
  t.match(decodeStatus(Buffer.from(page.image)), { bytesIn: 7, opened: ROWS_MAX + 2 })
})

t.test('the state of a stream is which directions have ended, and its queues are unread bytes', async t => {
  const page = new StatusPage(new ArrayBuffer(PAGE_SIZE))
  const counts = new StreamCounts()
  counts.waiting(1)
  counts.endedHere()
  counts.open(page.open({ kind: 'net', transport: 'shm', role: 'client' }), 1000)
  const seen = () => decodeStatus(Buffer.from(page.image))?.sockets[0]
  t.match(seen(), { state: 'ESTAB', recvQueue: 0, sendQueue: 0 }, 'nothing is counted before it is up')
  add(counts, BYTES_IN, 30)
  add(counts, BYTES_TAKEN, 10)
  counts.sent(500)
  add(counts, PEER_TAKEN, 400)
  counts.waiting(7)
  t.match(seen(), { recvQueue: 20, sendQueue: 107, creditLeft: 900 })
  counts.endedByPeer()
  t.match(seen(), { state: 'CLOSE-WAIT' })
  counts.endedHere()
  counts.endedHere()
  t.match(seen(), { state: 'CLOSING' })
  counts.close()
  page.open({ kind: 'net', transport: 'shm', role: 'client' })
  t.match(seen(), { row: 0, state: 'ESTAB', sendQueue: 0 }, 'the next one begins anew')
})

t.test('without memory to share everything is counted all the same', async t => {
  const page = new StatusPage(undefined)
  const counts = new StreamCounts()
  counts.open(page.open({ kind: 'net', transport: 'shm', role: 'client' }), 100)
  add(counts, BYTES_IN, 7)
  counts.close()
  t.equal(counts.bytesIn, 7)
})

t.test('a row is as good as new for its next socket, and late counts of the last one are lost', async t => {
  const page = new StatusPage(new ArrayBuffer(PAGE_SIZE))
  const open = (address: string): StreamCounts => {
    const counts = new StreamCounts()
    const local = { address, port: 80 }
    counts.open(page.open({ kind: 'net', transport: 'shm', role: 'client', local }), 100)
    return counts
  }
  const first = open('127.0.0.1')
  add(first, BYTES_IN, 7)
  first.endedHere()
  first.close()
  const second = open('::1')
  add(first, BYTES_IN, 5)
  add(second, BYTES_IN, 1)
  t.equal(first.bytesIn, 7)
  const { bytesIn, sockets } = decodeStatus(page.image) as ThreadStatus
  t.equal(bytesIn, 8)
  t.match(sockets, [{ bytesIn: 1, local: '[::1]:80', state: 'ESTAB' }])
  t.equal(sockets.length, 1)
})

t.test('what is no page, or of another version, is refused', async t => {
  const page = somePage()
  t.equal(decodeStatus(page.subarray(0, HEADER_SIZE - 1)), undefined)
  t.equal(decodeStatus(Buffer.alloc(HEADER_SIZE)), undefined)
  page.writeDoubleLE(99, 8 * HEADER.VERSION)
  t.equal(decodeStatus(page), undefined)
})

t.test('random words do no harm, and no text reaches a terminal that it would obey', async t => {
  const random = seededRandom(t)
  const page = somePage()
  let seen = 0
  for (let round = 0; round < ROUNDS; round++) {
    const twisted = Buffer.from(page)
    for (let i = random.within(1, 20); i > 0; i--) {
      const at = random.within(16, twisted.length - 8) & ~7
      if (random.chance(0.5)) twisted.writeDoubleLE(random.within(-10, 1e9) / 3, at)
      else random.bytes(8).copy(twisted, at)
    }
    twisted.write('\x1b[2J', PROGRAM_AT)
    const text = JSON.stringify(decodeStatus(twisted))
    if (text.includes('\\u001b')) t.fail(text)
    seen++
  }
  t.equal(seen, ROUNDS)
  const long = Buffer.concat([page, Buffer.alloc(ROW_SIZE / 2)])
  long.writeDoubleLE(1e9, 8 * HEADER.ROWS_USED)
  t.equal(decodeStatus(long)?.sockets.length, 2, 'rows beyond the end are not looked for')
})

t.test('datagrams are summed by direction, those of pairs that are over among them', async t => {
  const page = new StatusPage(new ArrayBuffer(PAGE_SIZE))
  page.open(
    { kind: 'udp', transport: 'udp', reason: 'SHARED_PORT', local: { address: '::', port: 53 } },
    true,
  )
  for (const [role, count, dropped] of [
    ['client', 5, 1],
    ['server', 7, 2],
  ] as const) {
    const [open, over] = [0, 1].map(() => page.open({ kind: 'dgram', transport: 'shm', role }, true))
    for (const row of [open, over]) {
      if (row === undefined) continue
      row.counts[DATAGRAMS] = count
      row.counts[DROPPED] = dropped
    }
    over?.close()
  }
  t.match(decodeStatus(Buffer.from(page.image)), {
    opened: 0,
    datagramsIn: 14,
    datagramsOut: 10,
    droppedIn: 4,
    droppedOut: 2,
    sockets: [
      { kind: 'udp', transport: 'udp', role: '', reason: 'SHARED_PORT', local: '[::]:53' },
      { kind: 'dgram', role: 'client', datagrams: 5, dropped: 1 },
      { kind: 'dgram', role: 'server', datagrams: 7, dropped: 2 },
    ],
  })
})
