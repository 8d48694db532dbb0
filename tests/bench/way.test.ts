/** How long the way of a message is, and that docs/architecture.md draws it. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { plainEnvironment } from '../support/child.ts'

const FUNCTIONS_MAX = 95
const CALLS_MAX = 130

const page = readFileSync(new URL('../../../docs/architecture.md', import.meta.url), 'utf8')
const drawing = page.slice(page.indexOf('## How a byte travels'), page.indexOf('## How a connection is made'))

t.test(
  'an echo of 64 bytes keeps its budget on both sides, and the page names every function of it',
  async t => {
    const script = fileURLToPath(new URL('../../bench/way.js', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [script, 'socket', '--names'], {
      env: plainEnvironment(),
    })
    const sides = [
      ...stdout.matchAll(/^socket, (client|server): (\d+) functions, (\d+) calls\n((?: {2}.*\n)+)/gm),
    ]
    t.equal(sides.length, 2)
    for (const [, side = '', functions, calls, names = ''] of sides) {
      t.ok(Number(functions) <= FUNCTIONS_MAX, `${side}: ${functions} functions`)
      t.ok(Number(calls) <= CALLS_MAX, `${side}: ${calls} calls`)
      const unnamed = names
        .trim()
        .split('\n')
        .map(line =>
          line
            .trim()
            .replace(/ [\d.]+$/, '')
            .replace(/^(get|set) /, '')
            .replace(/^[$#]/, ''),
        )
        .filter(name => /^\w+$/.test(name) && !new RegExp(`\\b${name}\\b`).test(drawing))
      t.strictSame(unnamed, [], `${side}: functions that docs/architecture.md does not name`)
    }
  },
)
