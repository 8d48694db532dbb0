import t from 'tap'
import { describeFrame, openEndpoint } from '../../am/index.ts'
import { encodeHead, KIND_BOUNCE } from '../../am/message-layout.ts'
import { UNDELIVERABLE } from '../../am/undeliverable.ts'
import { drivers, traceDriver } from '../../nic/index.ts'

t.test('what is no message is said to be none', async t => {
  t.equal(describeFrame(Buffer.alloc(3), 0, 3), 'no message: 3 bytes')
  t.equal(describeFrame(Buffer.alloc(16, 0xff), 0, 16), 'no message: head 0xffffffff')
})

t.test('a trace of two endpoints tells every message', async t => {
  const lines: string[] = []
  const loopback = drivers.get('loopback')
  if (loopback === undefined) throw new Error('there is no loopback')
  const driver = traceDriver(loopback, line => lines.push(line), describeFrame)
  const near = await openEndpoint({ drivers: [driver], segment: 1000 })
  const far = await openEndpoint({ drivers: [driver], segment: 1000, tag: 0x2an })
  t.teardown(() => Promise.all([near.close(), far.close()]))
  far.setHandler(5, message => message.reply(6, -7))
  far.setHandler(8, message => message.replyLong(6, Buffer.alloc(4), 12))
  near.setHandler(6, () => {})
  await near.map(0, far.name, 0x2an)
  await near.call(0, 5, Buffer.from('abc'), [1, -2])
  near.requestLong(0, 5, Buffer.alloc(100), 40)
  await near.call(0, 8)
  const returned = new Promise(resolve => near.setHandler(0, resolve))
  near.request(0, 9)
  await returned
  const trace = lines.join('\n')
  for (const said of [
    /REQUEST handler 5 slot 0 tag 0x2a words 1 -2 payload 3/,
    /REPLY handler 6 slot 0 words -7/,
    /LONG handler 5 slot 1 tag 0x2a region 40\+100 payload 100/,
    /REPLY handler 6 slot 2 region 12\+4 payload 4/,
    /RETURN NO_SUCH_HANDLER slot 3/,
  ]) {
    t.match(trace, said)
  }
})

t.test('a reply that comes back says why', async t => {
  const frame = Buffer.alloc(16)
  frame.writeInt32LE(encodeHead(KIND_BOUNCE, 1, 6, UNDELIVERABLE.TOO_LONG))
  frame.writeInt32LE(-7, 8)
  t.equal(describeFrame(frame, 0, frame.length), 'BOUNCE TOO_LONG handler 6 words -7')
})
