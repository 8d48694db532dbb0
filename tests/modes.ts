/**
 * `npm run test:modes`: the tests that compare what plain and relinked programs see, with connections that move after the first
 * byte, and after a random price whose seed is printed.
 *
 *   npm run test:modes -- [--seed N] [--turn COMMIT]
 *
 * `--turn`, as CI runs it: two of the files in one mode of three, connections that are fast at once among them. The commit's hash chooses mode and
 * seed; both are printed.
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

/** Of `--turn`; CI runs the others in the first mode anyway. */
const TURN_FILES = FILES.slice(0, 2)

const { values } = parseArgs({ options: { seed: { type: 'string' }, turn: { type: 'string' } } })
const turn = values.turn === undefined ? undefined : Number.parseInt(values.turn.slice(0, 8), 16)
const seed = values.seed ?? String(turn ?? 1 + Math.floor(Math.random() * 1e6))
const FAST = ''
const moving = ['price=0', `price-seed=${seed}`]
const modes = turn === undefined ? moving : [[FAST, ...moving][turn % 3] as string]

function run(file: string, ablate: string): boolean {
  const path = fileURLToPath(new URL(`${file}.test.js`, import.meta.url))
  const children = new URL('./support/plain-children.js', import.meta.url).href
  const env = {
    ...process.env,
    FASTSOCKETS_START: ablate === FAST ? 'fast' : 'tcp',
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
  console.log(`${status === 0 ? 'ok' : 'FAILED'}  ${file}, ${ablate || 'fast at once'}`)
  if (status !== 0) console.log(stdout)
  return status === 0
}

let isRight = true
for (const ablate of modes)
  for (const file of turn === undefined ? FILES : TURN_FILES) isRight = run(file, ablate) && isRight
if (!isRight) process.exitCode = 1
