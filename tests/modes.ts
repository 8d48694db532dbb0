/**
 * `npm run test:modes`: the tests that compare what plain and relinked programs see, with connections that move after the first
 * byte, and after a random price whose seed is printed.
 *
 *   npm run test:modes -- [--seed N]
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const FILES = [
  'fastsockets/streams',
  'fastsockets/endings',
  'fastsockets/schedules',
  'fastsockets/promotion/promotion',
  'interop/interop',
]

const { values } = parseArgs({ options: { seed: { type: 'string' } } })
const seed = values.seed ?? String(1 + Math.floor(Math.random() * 1e6))
const modes = ['price=0', `price-seed=${seed}`]

function run(file: string, ablate: string): boolean {
  const path = fileURLToPath(new URL(`${file}.test.js`, import.meta.url))
  const children = new URL('./support/plain-children.js', import.meta.url).href
  const env = {
    ...process.env,
    FASTSOCKETS_START: 'tcp',
    FASTSOCKETS_ABLATE: ablate,
    FASTSOCKETS_GREETING_TIMEOUT_MS: '2000',
    TAP_TIMEOUT: '300',
  }
  const { status, stdout } = spawnSync(process.execPath, [`--import=${children}`, path], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 28,
  })
  console.log(`${status === 0 ? 'ok' : 'FAILED'}  ${file}, ${ablate}`)
  if (status !== 0) console.log(stdout)
  return status === 0
}

let isRight = true
for (const ablate of modes) for (const file of FILES) isRight = run(file, ablate) && isRight
if (!isRight) process.exitCode = 1
