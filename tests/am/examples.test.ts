/** The programs in am/README.md, as a reader would run them. */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { plainEnvironment } from '../support/child.ts'

const README = new URL('../../../am/README.md', import.meta.url)
/** Within the package, so that it may be imported by its name. */
const DIRECTORY = new URL('../../examples-of-am/', import.meta.url)
const BLOCK = /```js\n(?:\/\/ (\S+\.mjs)\n)?([\s\S]+?)```/g

const EXPECTED: Record<string, RegExp> = {
  'first.mjs': /^answer 42\ncalled 8\n$/,
  'ping-pong.mjs': /^200000 round trips, \d+ ns each\n$/,
  'counter.mjs': /^the counter is at 3000\n$/,
  'word-count.mjs': /^the: 6000, fox: 3000, number: 3000\n$/,
  'lossy.mjs': /^all 1000, some of them sent again\n$/,
  'halo.mjs': /^400 steps on 4 workers: the same as on one\n$/,
}

const programs = new Map(
  [...readFileSync(README, 'utf8').matchAll(BLOCK)].map(([, name = 'first.mjs', text]) => [name, text ?? '']),
)

t.before(() => mkdirSync(DIRECTORY, { recursive: true }))
t.teardown(() => rmSync(DIRECTORY, { recursive: true }))

t.strictSame([...programs.keys()].sort(), Object.keys(EXPECTED).sort(), 'each program is expected')

for (const [name, text] of programs) {
  t.test(name, async t => {
    const file = fileURLToPath(new URL(name, DIRECTORY))
    writeFileSync(file, text)
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], {
      env: plainEnvironment(),
      timeout: 30_000,
    })
    t.match(stdout, EXPECTED[name])
    t.equal(stderr, '')
  })
}
