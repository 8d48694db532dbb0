/** docs/protocol.md names every constant of the protocol with its value and its file, and shows bytes: this keeps it true. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { ReliableInterface } from '../am/index.ts'
import { UNDELIVERABLE } from '../am/undeliverable.ts'
import { DATA } from '../fastsockets/stream/stream-layout.ts'
import { openLoopbackPair } from '../nic/index.ts'
import { openChannelPair, sendRequest } from './support/channels.ts'
import { drain, sendFrame } from './support/frames.ts'

const ROOT = new URL('../../', import.meta.url)
/** A file, and its constants with their values. */
const ROW = /^(\S+\.ts) \| ((?:`[A-Z_0-9]+` \d+(?:, |$))+)$/gm
const ARITHMETIC = /^(0x[\da-f]+|[\d\s_.*+\-/<()]+)$/
const ROWS_MIN = 30
/** In the text: a constant with its value behind it. */
const NAMED = /`([A-Z][A-Z_0-9]{3,})`,? \(?(0x[\da-f]+|\d[\d.]*(?:\^\d+)?)(?: (ms|s|KiB|MiB))?(?=[),;:.\s])/g
const NAMED_MIN = 50
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, KiB: 1024, MiB: 1024 ** 2 }
const LAYERS = ['nic', 'am', 'fastsockets', 'nameservice']

const source = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8')
const page = source('docs/protocol.md')
const rows = [...page.matchAll(ROW)].flatMap(([, path = '', list = '']) =>
  [...list.matchAll(/`([A-Z_0-9]+)` (\d+)/g)].map(([, name = '', value]) => ({
    name,
    value: Number(value),
    path,
  })),
)

t.test('the table of limits says what the sources say', async t => {
  t.ok(rows.length >= ROWS_MIN, `${rows.length} rows`)
  for (const { name, value, path } of rows) t.equal(constantOf(name, path), value, `${name} in ${path}`)
})

t.test('a constant that the text names with its value has that value in a source', async t => {
  const sources = LAYERS.flatMap(layer =>
    readdirSync(new URL(layer, ROOT), { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.ts'))
      .map(name => `${layer}/${name}`),
  ).map(path => [path, source(path)] as const)
  const named = [...page.matchAll(NAMED)]
  t.ok(named.length >= NAMED_MIN, `${named.length} of them`)
  for (const [text, name = '', value = '', unit = ''] of named) {
    // Without those that are bigints, of addresses.
    const definitions = sources.filter(([, code]) => new RegExp(`const ${name} = (?!.*\\dn)`).test(code))
    const values = definitions.map(([path]) => constantOf(name, path))
    t.ok(values.includes(numberOf(value) * (UNITS[unit] ?? 1)), `${text}: ${values.join(', ')}`)
  }
})

t.test('the table of reasons says what the source says', async t => {
  const [table = ''] = /^reason .*\n(?:.+\n)+/m.exec(page.slice(page.indexOf('### What comes back'))) ?? []
  const reasons = [...table.matchAll(/^`([A-Z_]+)`\s*\| (\d)/gm)].map(([, name, number]) => [
    name,
    Number(number),
  ])
  t.strictSame(reasons, Object.entries(UNDELIVERABLE))
})

t.test('the example of a message is what a channel puts into its ring', async t => {
  const bytes = exampleBehind('Example: the DATA message')
  const [{ channel, end }] = openChannelPair()
  sendRequest(channel, DATA, [1, 0, 0, 0], Buffer.from('hello'))
  t.equal(bytes.length, 40)
  t.strictSame(Buffer.from(end.sendBytes.subarray(0, 40)), bytes)
})

t.test('the example of the reliability layer is the frame that it sends', async t => {
  const [near, far] = openLoopbackPair()
  sendFrame(new ReliableInterface(near, { firstSequence: 7 }), Buffer.from('hello'))
  t.strictSame(drain(far), [exampleBehind('Example: the first frame of an')])
})

/** The bytes of the block of hexadecimal lines that follows `text`. */
function exampleBehind(text: string): Buffer {
  const [, block = ''] = /\n\n((?: {4}.*\n)+)/.exec(page.slice(page.indexOf(text))) ?? []
  const lines = [...block.matchAll(/^ {4}((?:[\da-f]+ )+)/gm)]
  return Buffer.from(lines.map(([, hex = '']) => hex.replaceAll(' ', '')).join(''), 'hex')
}

function numberOf(text: string): number {
  const [base = '', exponent = '1'] = text.split('^')
  return Number(base) ** Number(exponent)
}

/** The constant's value as its source writes it; a sum may name other constants of the file, or ones of the table. */
function constantOf(name: string, path: string): number {
  const expression = new RegExp(`const ${name} = (.+)`).exec(source(path))?.[1]?.replace(/ as const$/, '')
  if (expression === undefined) {
    const row = rows.find(other => other.name === name && other.path !== path)
    if (row === undefined) throw new Error(`${path} has no ${name}`)
    return row.value
  }
  const sum = expression.replace(/[A-Z][A-Z_]+(\.length)?/g, other => String(lengthOrConstant(other, path)))
  if (!ARITHMETIC.test(sum)) throw new Error(`${name} in ${path} is not arithmetic: ${expression}`)
  return Number(new Function(`return ${sum}`)())
}

function lengthOrConstant(name: string, path: string): number {
  if (!name.endsWith('.length')) return constantOf(name, path)
  const list = new RegExp(`const ${name.slice(0, -'.length'.length)} = \\[(.+?)\\]`).exec(source(path))?.[1]
  return list?.split(',').length ?? Number.NaN
}
