import t from 'tap'
import { CANDIDATE_COUNT, hashedPort } from '../../../fastsockets/bootstrap/hashed-port.ts'

const UNPRIVILEGED_MIN = 1024
const PORT_MAX = 65535
const candidates = Array.from({ length: CANDIDATE_COUNT }, (_, candidate) => candidate)

for (const candidate of candidates) {
  t.test(`candidate ${candidate} maps the unprivileged ports one to one onto themselves`, async t => {
    const images = new Set<number>()
    let outside = 0
    for (let port = UNPRIVILEGED_MIN; port <= PORT_MAX; port++) {
      const hashed = hashedPort(port, candidate)
      images.add(hashed)
      if (!Number.isInteger(hashed) || hashed < UNPRIVILEGED_MIN || hashed > PORT_MAX) outside++
    }
    t.equal(images.size, PORT_MAX - UNPRIVILEGED_MIN + 1)
    t.equal(outside, 0)
  })

  t.test(`candidate ${candidate} maps no port to a privileged one`, async t => {
    const images = Array.from({ length: PORT_MAX + 1 }, (_, port) => hashedPort(port, candidate))
    t.strictSame(
      images.filter(hashed => hashed < UNPRIVILEGED_MIN || hashed > PORT_MAX),
      [],
    )
  })

  t.test(`candidate ${candidate} maps no port to itself`, async t => {
    const ports = Array.from({ length: PORT_MAX + 1 }, (_, port) => port)
    t.strictSame(
      ports.filter(port => hashedPort(port, candidate) === port),
      [],
    )
  })
}

t.test('the candidates of one port are different ports', async t => {
  const repeated = []
  for (let port = 1; port <= PORT_MAX; port++) {
    if (new Set(candidates.map(candidate => hashedPort(port, candidate))).size < CANDIDATE_COUNT)
      repeated.push(port)
  }
  t.strictSame(repeated, [])
})

t.test('the numbers are part of the protocol and do not change', async t => {
  t.strictSame(
    [80, 1024, 8080, 65535].map(port => candidates.map(candidate => hashedPort(port, candidate))),
    [
      [62507, 26183, 6653],
      [24603, 53815, 34285],
      [6763, 35975, 16445],
      [48334, 12010, 58016],
    ],
  )
})

t.test('a candidate that does not exist is a RangeError', async t => {
  for (const candidate of [-1, CANDIDATE_COUNT, 0.5, Number.NaN]) {
    t.throws(() => hashedPort(8080, candidate), RangeError, `${candidate}`)
  }
})
