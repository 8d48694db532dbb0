import net from 'node:net'
import t from 'tap'
import { targetOf } from '../../../fastsockets/relink/connect-target.ts'

const atPort = { address: '127.0.0.1', port: 8080, isPath: false, isBound: false }

t.test('what a connect asks for, in every way that Node takes', async t => {
  const options = { host: '127.0.0.1', port: 8080 }
  const inherited = Object.create(options) as object
  class Options {
    get host(): string {
      return '127.0.0.1'
    }
    get port(): string {
      return '8080'
    }
  }
  for (const [name, args] of Object.entries({
    numbers: [8080, '127.0.0.1'],
    'a port that is text': ['8080', '127.0.0.1', () => {}],
    options: [options],
    'options that are spread': [{ ...options, noDelay: true }],
    'options without a prototype': [{ __proto__: null, ...options }],
    'options that are inherited': [inherited],
    'options of a class': [new Options()],
    'as net.connect hands them on': [[options, null]],
  }))
    t.same(targetOf(args), atPort, name)
})

t.test('a host that is not said is localhost, a path is no port, and what is bound says so', async t => {
  t.match(targetOf([80]), { address: 'localhost', port: 80 })
  t.match(targetOf([{ port: 80, host: '' }]), { address: 'localhost', port: 80 })
  t.same(targetOf(['/a/path']), { address: '/a/path', port: 0, isPath: true, isBound: false })
  t.match(targetOf([{ path: '/a/path', port: 80 }]), { address: '/a/path', port: 0, isPath: true })
  t.match(targetOf([{ port: 80, localPort: 81 }]), { isBound: true })
  t.match(targetOf([{ ...Object.create(null), port: 80, localAddress: '127.0.0.2' }]), { isBound: true })
  t.match(targetOf([Object.create({ port: 80, localPort: 81 })]), { port: 80, isBound: true }, 'inherited')
})

t.test('what Node refuses is none', async t => {
  for (const args of [[{}], [{ path: 7 }], [{ port: undefined }], [undefined], [[{}]]]) {
    t.equal(targetOf(args), undefined)
    t.throws(() => net.connect(...(args as [net.NetConnectOpts])).destroy())
  }
})
