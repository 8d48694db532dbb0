/** docs/protocol.md names every constant of the protocol with its value and its file: this keeps it true. */
import { readFileSync } from 'node:fs'
import t from 'tap'

const ROOT = new URL('../../', import.meta.url)
const ROW = /^\| `([A-Z_0-9]+)`\s*\| (\d+)\s*\|.*\| (\S+\.ts)\s*\|$/gm
const ARITHMETIC = /^(0x[\da-f]+|[\d\s_*+\-/<()]+)$/
const ROWS_MIN = 50

const source = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8')
const rows = [...source('docs/protocol.md').matchAll(ROW)]

t.test('the table of limits says what the sources say', async t => {
  t.ok(rows.length >= ROWS_MIN, `${rows.length} rows`)
  for (const [, name = '', value, path = ''] of rows) {
    t.equal(constantOf(name, path), Number(value), `${name} in ${path}`)
  }
})

/** The constant's value as its source writes it; a sum may name other constants of the file, or ones of the table. */
function constantOf(name: string, path: string): number {
  const expression = new RegExp(`const ${name} = (.+)`).exec(source(path))?.[1]?.replace(/ as const$/, '')
  if (expression === undefined) {
    const row = rows.find(([, other, , otherPath]) => other === name && otherPath !== path)
    if (row === undefined) throw new Error(`${path} has no ${name}`)
    return Number(row[2])
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
