/** What only Node 20 needs is loaded there, and nowhere else. */
import net from 'node:net'
import t from 'tap'
import { node20 } from '../../../fastsockets/host/node-versions.ts'

const isNode20 = process.versions.node.startsWith('20.')
const skip = isNode20 ? false : 'this is not Node 20'

t.test('only Node 20 loads the file', async t => t.equal(node20 !== undefined, isNode20))

t.test('what a connect is given is copied if it is plain', { skip }, async t => {
  const { copyOptions } = node20 as NonNullable<typeof node20>
  const options = { host: '127.0.0.1', port: 8080, [Symbol('own')]: 1 }
  const listener = (): void => {}

  const args: unknown[] = [options, listener]
  copyOptions(args)
  t.strictSame(args, [options, listener])
  t.not(args[0], options, 'a copy')

  const { _normalizeArgs } = net as unknown as { _normalizeArgs(args: unknown[]): unknown[] }
  const ordered = _normalizeArgs([options, listener])
  copyOptions([ordered])
  t.strictSame([...ordered], [options, listener])
  t.not(ordered[0], options, "in Node's own list")

  class Options {
    readonly port = 8080
  }
  for (const [name, given] of Object.entries({
    'of a class': new Options(),
    'without a prototype': { __proto__: null, ...options },
    inherited: Object.create(options) as object,
    'a proxy': new Proxy(options, {}),
    "a list of somebody's": [options],
    'a port': 8080,
    'a path': '/a/path',
    nothing: undefined,
    null: null,
  })) {
    const args: unknown[] = [given]
    copyOptions(args)
    t.equal(args[0], given, name)
  }
  const list = [options]
  copyOptions([list])
  t.equal(list[0], options, "what is in somebody's list is not touched")
  const none: unknown[] = []
  copyOptions(none)
  t.strictSame(none, [])
})
