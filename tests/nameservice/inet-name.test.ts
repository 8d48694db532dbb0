import t from 'tap'
import { formatInetName, type InetName, parseInetName } from '../../nameservice/index.ts'
import { seededRandom } from '../support/random.ts'

const names: [name: string, meaning: InetName][] = [
  ['inet:tcp:10.0.0.7:8080', { address: '10.0.0.7', port: 8080 }],
  ['inet:tcp:0.0.0.0:1', { address: '0.0.0.0', port: 1 }],
  ['inet:tcp:255.255.255.255:65535', { address: '255.255.255.255', port: 65535 }],
  ['inet:tcp:::1:80', { address: '::1', port: 80 }],
  ['inet:tcp::::80', { address: '::', port: 80 }],
  ['inet:tcp:2001:db8::8:800:200c:417a:443', { address: '2001:db8::8:800:200c:417a', port: 443 }],
  ['inet:tcp:::ffff:10.0.0.7:8080', { address: '::ffff:10.0.0.7', port: 8080 }],
  ['inet:tcp:fe80::1%eth0:22', { address: 'fe80::1%eth0', port: 22 }],
]

t.test('a name is made of an address and a port, and means them again', async t => {
  for (const [name, meaning] of names) {
    t.equal(formatInetName(meaning), name)
    t.strictSame(parseInetName(name), meaning)
  }
})

t.test('what is no name of a listener means nothing', async t => {
  const strange = [
    '',
    'inet:tcp:',
    'inet:tcp::',
    'inet:tcp:80',
    'inet:tcp::80',
    'inet:tcp:10.0.0.7',
    'inet:tcp:10.0.0.7:',
    'inet:tcp:10.0.0.7:0',
    'inet:tcp:10.0.0.7:080',
    'inet:tcp:10.0.0.7:65536',
    'inet:tcp:10.0.0.7:100000',
    'inet:tcp:10.0.0.7:-1',
    'inet:tcp:10.0.0.7:8e1',
    'inet:tcp:10.0.0.7:80 ',
    'inet:tcp:10.0.0.7:80\n',
    'inet:tcp: 10.0.0.7:80',
    'inet:tcp:10.0.0:80',
    'inet:tcp:10.0.0.256:80',
    'inet:tcp:localhost:80',
    'inet:tcp:[::1]:80',
    'inet:udp:10.0.0.7:80',
    'INET:TCP:10.0.0.7:80',
    ' inet:tcp:10.0.0.7:80',
    'printer',
  ]
  for (const name of strange) t.equal(parseInetName(name), undefined, JSON.stringify(name))
})

t.test('an address that is none is a TypeError, a port that is none a RangeError', async t => {
  for (const address of ['', 'localhost', '10.0.0', '[::1]', '10.0.0.7:80']) {
    t.throws(() => formatInetName({ address, port: 80 }), TypeError, JSON.stringify(address))
  }
  for (const port of [0, -1, 65536, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    t.throws(() => formatInetName({ address: '10.0.0.7', port }), RangeError, `${port}`)
  }
})

t.test('any text at all is a name or none, without an exception', async t => {
  const random = seededRandom(t)
  const pieces = [
    'inet:',
    'tcp:',
    'inet:tcp:',
    ':',
    '::',
    '1',
    '80',
    '10.0.0.7',
    'fe80',
    '%',
    'x',
    '\0',
    '☃',
  ] as const
  for (let round = 0; round < 20_000; round++) {
    let text = random.chance(0.7) ? 'inet:tcp:' : ''
    for (let i = random.within(0, 8); i > 0; i--) text += random.pick(pieces)
    const meaning = parseInetName(text)
    if (meaning !== undefined && formatInetName(meaning) !== text) t.fail(JSON.stringify(text))
  }
})
