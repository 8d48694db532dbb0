import { readFileSync } from 'node:fs'
import t from 'tap'
import { openEndpoint } from '../../../am/index.ts'
import {
  decodeName,
  encodeName,
  newEndpointName,
  rendezvousPath,
  thisHost,
  thisThread,
} from '../../../am/rendezvous/endpoint-name.ts'

t.test('a name says host, thread and endpoint, and is printable', async t => {
  const name = { host: '0'.repeat(32), thread: '1'.repeat(32), endpoint: '2'.repeat(16) }
  const text = encodeName(name)
  t.equal(text, `am1-${'0'.repeat(32)}-${'1'.repeat(32)}-${'2'.repeat(16)}`)
  t.strictSame(decodeName(text), name)
})

t.test('endpoints of one thread have its host and thread, and numbers of their own', async t => {
  const [a, b] = [newEndpointName(), newEndpointName()]
  t.match(
    [a, b],
    [
      { host: thisHost(), thread: thisThread },
      { host: thisHost(), thread: thisThread },
    ],
  )
  t.not(a.endpoint, b.endpoint)
  t.strictSame(decodeName(encodeName(a)), a)
})

t.test("a text that is no endpoint's name may be a published name", async t => {
  const name = encodeName(newEndpointName())
  const others = [
    '',
    'am1-',
    ` ${name}`,
    `${name} `,
    `${name}\n`,
    name.slice(0, -1),
    `${name}0`,
    name.toUpperCase(),
  ]
  for (const other of [...others, name.replace('am1', 'am2'), name.replaceAll('-', '_')]) {
    t.equal(decodeName(other), undefined, JSON.stringify(other))
  }
})

t.test('a thread answers on a socket whose name every version of Node writes alike', async t => {
  const endpoint = await openEndpoint({ drivers: ['loopback'] })
  const path = rendezvousPath(thisThread)
  t.equal(path.length, 108)
  const names = readFileSync('/proc/net/unix', 'latin1').split(/\s/)
  t.ok(names.includes(`@${path.slice(1)}`))
  await endpoint.close()
})
