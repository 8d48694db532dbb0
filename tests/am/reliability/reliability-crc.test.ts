import t from 'tap'
import { CRC_START, copyWithCrc, crcOfWords } from '../../../am/reliability/crc32c.ts'
import { seededRandom } from '../../support/random.ts'

const POLYNOMIAL = 0x82f63b78

function checksum(bytes: Uint8Array): number {
  const source = new Int32Array(Math.ceil(bytes.length / 4))
  new Uint8Array(source.buffer).set(bytes)
  return ~copyWithCrc(CRC_START, source, 0, new Int32Array(source.length), 0, bytes.length) >>> 0
}

/** As the definition has it: one bit after the other. */
function checksumByBits(bytes: Uint8Array): number {
  let sum = CRC_START
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = (sum & 1) === 0 ? sum >>> 1 : (sum >>> 1) ^ POLYNOMIAL
  }
  return ~sum >>> 0
}

t.test('the examples of RFC 3720, appendix B.4', async t => {
  const ascending = Uint8Array.from({ length: 32 }, (_, i) => i)
  const readCommand = Buffer.from(
    '01c00000000000000000000000000000140000000000040000000014000000182800000000000000020000000000000000',
    'hex',
  ).subarray(0, 48)
  t.equal(checksum(new Uint8Array(32)), 0x8a9136aa, '32 zeros')
  t.equal(checksum(new Uint8Array(32).fill(0xff)), 0x62a8ab43, '32 ones')
  t.equal(checksum(ascending), 0x46dd794e, 'ascending')
  t.equal(checksum(ascending.reverse()), 0x113fdb5c, 'descending')
  t.equal(checksum(readCommand), 0xd9963a56, 'an iSCSI SCSI Read (10) command PDU')
})

t.test('the check value of the catalogues', async t => {
  t.equal(checksum(Buffer.from('123456789')), 0xe3069283)
  t.equal(checksum(Buffer.alloc(0)), 0)
})

t.test('bytes of every length have the sum that the definition gives', async t => {
  const random = seededRandom(t)
  for (let length = 0; length < 200; length++) {
    const bytes = random.bytes(length)
    t.equal(checksum(bytes), checksumByBits(bytes), `${length} bytes`)
  }
})

t.test('what is copied is what was there, and the sum goes on from one part to the next', async t => {
  const random = seededRandom(t)
  const source = new Int32Array(random.bytes(400).buffer.slice(0, 400))
  for (const length of [0, 1, 7, 8, 9, 100, 256]) {
    const target = new Int32Array(100)
    const whole = copyWithCrc(CRC_START, source, 5, target, 20, length)
    t.ok(
      Buffer.from(target.buffer, 80, length).equals(Buffer.from(source.buffer, 20, length)),
      `${length} bytes`,
    )
    t.ok(
      target.subarray(0, 20).every(word => word === 0),
      'nothing before it is touched',
    )
    const begun = crcOfWords(CRC_START, source, 3, 2)
    t.equal(
      copyWithCrc(begun, source, 5, target, 20, length),
      copyWithCrc(CRC_START, source, 3, target, 18, length + 8),
    )
    t.type(whole, 'number')
  }
})

t.test('up to five flipped bits in a short frame are always seen', async t => {
  const random = seededRandom(t)
  const bytes = random.bytes(64)
  const sum = checksum(bytes)
  let unseen = 0
  for (let round = 0; round < 20_000; round++) {
    const bits = new Set<number>()
    while (bits.size < 1 + (round % 5)) bits.add(random.within(0, 8 * bytes.length - 1))
    const damaged = Uint8Array.from(bytes)
    for (const bit of bits) damaged[bit >> 3] = (damaged[bit >> 3] as number) ^ (1 << (bit & 7))
    if (checksum(damaged) === sum) unseen++
  }
  t.equal(unseen, 0)
})
