/** Which ports the clients of a listener seem to have. */
import t from 'tap'
import { PortShare, SyntheticPorts } from '../../../fastsockets/host/synthetic-ports.ts'

const open = (): SyntheticPorts => new SyntheticPorts([2000, 2199], () => ({ stride: 64, offset: 3 }))
const OWN = [2003, 2067, 2131, 2195]

t.test('first those of the stripe, then all others, each once', async t => {
  const ports = open()
  const given = Array.from({ length: 200 }, () => ports.allocate())
  t.strictSame(given.slice(0, OWN.length), OWN)
  t.equal(new Set(given).size, 200)
  t.ok(given.every(port => port >= 2000 && port <= 2199))
  t.equal(ports.allocate(), 0, 'there are no more')
  ports.release(2067)
  ports.release(2067)
  t.equal(ports.allocate(), 2067)
  t.equal(ports.allocate(), 0)
})

t.test('one that has just come back is not the next', async t => {
  const ports = open()
  const given = OWN.map(() => {
    const port = ports.allocate()
    ports.release(port)
    return port
  })
  t.strictSame(given, OWN)
})

t.test('a port that the program listens on is given to no client', async t => {
  const ports = open()
  t.ok(ports.reserve(2067))
  t.notOk(ports.reserve(2067))
  t.notOk(ports.reserve(80), 'it is none of them')
  const given = Array.from({ length: 199 }, () => ports.allocate())
  t.notOk(given.includes(2067))
  t.equal(ports.allocate(), 0)
})

t.test('a range without a port of the stripe has others', async t => {
  const ports = new SyntheticPorts([2000, 2001], () => ({ stride: 64, offset: 3 }))
  t.strictSame([ports.allocate(), ports.allocate(), ports.allocate()], [2000, 2001, 0])
})

t.test('one peer does not take all: there is always some for the next', async t => {
  const ports = open()
  const takeAll = (share: PortShare): number[] => {
    const taken: number[] = []
    for (let port = share.allocate(); port > 0; port = share.allocate()) taken.push(port)
    return taken
  }
  const greedy = new PortShare(ports)
  const first = takeAll(greedy)
  t.equal(first.length, 150, 'three quarters')
  const second = takeAll(new PortShare(ports))
  const third = takeAll(new PortShare(ports))
  t.ok(second.length > 0 && third.length > 0)
  t.equal(new Set([...first, ...second, ...third]).size, first.length + second.length + third.length)
  t.equal(greedy.allocate(), 0)
  for (const port of first) greedy.release(port)
  t.ok(greedy.allocate() > 0, 'what came back may be taken again')
})
