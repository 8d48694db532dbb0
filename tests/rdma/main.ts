/**
 * `npm run test:rdma`: boots a real Linux kernel with a software RDMA device in an emulator and runs the tests of
 * tests/rdma/in-guest there. Exit code: 0 passed or skipped, 1 failed, 2 there is no such test. See tests/rdma/README.md.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { exitOnInterrupt } from '../../fastsockets/cli/interrupts.ts'
import { REGISTER } from '../support/relinked.ts'
import { type GuestEnd, runGuest } from './guest.ts'
import { type GuestImage, prepareImage } from './guest-image.ts'

const SUFFIX = '.guest.js'
/** What chooses the two hosts. */
const PAIR = 'pair'
const PAIR_NAME = 'two hosts'
/** What chooses the host whose device is an iWARP one; tests with this before their names run only there. */
const IWARP = 'iwarp'
/** What runs there besides, by words of its own. */
const OVER_IWARP: Readonly<Record<string, string>> = {
  'iwarp-conformance': 'conformance',
  'iwarp-am': 'am',
  'iwarp-sockets': 'sockets',
}
const IN_GUEST = fileURLToPath(new URL('./in-guest/', import.meta.url))
const PROGRAM = fileURLToPath(new URL('./programs/pair.js', import.meta.url))
const CLI = fileURLToPath(new URL('../../fastsockets/cli/main.js', import.meta.url))
const FIXTURES = fileURLToPath(new URL('../../../tests/fixtures', import.meta.url))
/** Until the first emulator listens for the second. */
const SOCKET_PAUSE_MS = 100
const TIMEOUT_MS = 480_000
/** Of all test files on one host. */
const ALL_TIMEOUT_MS = 2 * TIMEOUT_MS
/** Emulated processors are slow. */
const ENVIRONMENT = {
  TAP_TIMEOUT: `${TIMEOUT_MS / 1000}`,
  FASTSOCKETS_GREETING_TIMEOUT_MS: '10000',
  // As .taprc says: most tests say what is true of fast connections.
  FASTSOCKETS_START: 'fast',
  DEBUG: process.env.DEBUG ?? '',
  FASTSOCKETS_RDMA_MIB: process.env.FASTSOCKETS_RDMA_MIB ?? '',
}

/** All of what `sockets` sends is sent over the other device. */
const IWARP_ENVIRONMENT = { FASTSOCKETS_RDMA_MIB: process.env.FASTSOCKETS_RDMA_MIB || '32' }

function findImage(isIwarp: boolean): GuestImage | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return skip('the guest is a Linux x64 kernel', isIwarp)
  try {
    return prepareImage(isIwarp)
  } catch (error) {
    return skip((error as Error).message.split('\n')[0] as string, isIwarp)
  }
}

function skip(reason: string, isIwarp = false): undefined {
  console.log(`SKIPPED: the tests over ${isIwarp ? 'iWARP' : 'RDMA'}: ${reason}`)
}

/** The names of what runs on one host; those of one whose device is an iWARP one. */
function allTests(isIwarp: boolean): string[] {
  const names = readdirSync(IN_GUEST)
    .filter(name => name.endsWith(SUFFIX))
    .map(name => name.slice(0, -SUFFIX.length))
    .filter(name => name.startsWith(IWARP) === isIwarp)
  return isIwarp ? [...names, ...Object.keys(OVER_IWARP)] : names
}

/** All, or those whose names contain one of the arguments; for iWARP the words begin as the names do. */
function chosenTests(words: readonly string[], isIwarp: boolean): string[] {
  const isChosen = (name: string): boolean =>
    words.some(word => (isIwarp ? name.startsWith(word) : name.includes(word)))
  return allTests(isIwarp).filter(name => words.length === 0 || isChosen(name))
}

/** Words by which nothing is chosen. */
function strayWords(words: readonly string[]): string[] {
  return words.filter(
    word => word !== PAIR && [false, true].every(isIwarp => chosenTests([word], isIwarp).length === 0),
  )
}

/** One host, with everything that one host can show; its software device is of the kernel's module `type`. */
function runAlone(image: GuestImage, type: 'rxe' | 'siw', tests: readonly string[]): Promise<GuestEnd> {
  const files = tests.map(name => `${IN_GUEST}${OVER_IWARP[name] ?? name}${SUFFIX}`)
  return runGuest(image, {
    prefix: '',
    script: 'one.sh',
    environment: {
      ...ENVIRONMENT,
      ...(type === 'siw' && IWARP_ENVIRONMENT),
      TYPE: type,
      TESTS: files.join(' '),
    },
    network: [],
    timeoutMs: ALL_TIMEOUT_MS,
  })
}

/** Two hosts with boot ids of their own; the second has no RDMA device at first. */
async function runPair(image: GuestImage): Promise<GuestEnd> {
  const socket = join(dirname(image.initrd), `wire-${process.pid}`)
  const guest = (number: 1 | 2, environment: Record<string, string>): Promise<GuestEnd> =>
    runGuest(image, {
      prefix: `host ${number}: `,
      script: 'pair.sh',
      environment: {
        ...ENVIRONMENT,
        ADDRESS: `10.78.0.${number}`,
        SERVER: '10.78.0.1',
        PROGRAM,
        CLI,
        FIXTURES,
        REGISTER: REGISTER.href,
        ...environment,
      },
      network: [
        ...[
          '-netdev',
          `stream,id=wire,server=${number === 1 ? 'on' : 'off'},addr.type=unix,addr.path=${socket}`,
        ],
        ...['-device', `virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0${number}`],
      ],
      timeoutMs: TIMEOUT_MS,
    })
  rmSync(socket, { force: true })
  const server = guest(1, { ROLE: 'serve' })
  let isOver = false
  void server.then(() => {
    isOver = true
  })
  while (!existsSync(socket) && !isOver) await pause(SOCKET_PAUSE_MS)
  if (isOver) return await server
  const client = guest(2, { ROLE: 'call' })
  const [served, called] = await Promise.all([server, client])
  rmSync(socket, { force: true })
  return served === 0 ? called : served
}

async function main(): Promise<number> {
  const words = process.argv.slice(2)
  const stray = strayWords(words)
  if (stray.length > 0) {
    const words = [...allTests(false), ...allTests(true), PAIR].join(', ')
    console.error(`there is no test ${stray.join(', ')}; there are: ${words}`)
    return 2
  }
  const image = findImage(false)
  if (image === undefined) return 0
  const runs: [name: string, run: () => Promise<GuestEnd>][] = []
  const tests = chosenTests(words, false)
  if (tests.length > 0) runs.push(['one host', () => runAlone(image, 'rxe', tests)])
  // Only when asked for: the kernel's module has to be built first, from a source of 140 MB.
  const iwarpTests = words.length === 0 ? [] : chosenTests(words, true)
  if (words.length === 0) skip(`not asked for; \`npm run test:rdma -- ${IWARP}\` runs them`, true)
  const iwarpImage = iwarpTests.length > 0 ? findImage(true) : undefined
  if (iwarpImage !== undefined)
    runs.push(['a host with iWARP', () => runAlone(iwarpImage, 'siw', iwarpTests)])
  if (words.length === 0 || words.includes(PAIR)) runs.push([PAIR_NAME, () => runPair(image)])
  let passed = 0
  let failed = 0
  for (const [name, run] of runs) {
    let end = await run()
    if (end === 'not booted') {
      skip('the emulator does not boot')
      continue
    }
    // One host that has come to its end has run what failed a second time itself.
    if (end === 'cut off' || (end !== 0 && name === PAIR_NAME)) {
      // As for any test file: docs/decisions/0050-second-chance.md.
      console.log(`=== ${name}: ${outcomeOf(end)}; a second time:`)
      end = await run()
      if (end === 0) console.log(`=== PASSED ONLY THE SECOND TIME: RDMA, ${name}`)
    }
    if (end === 0) passed++
    else failed++
    console.log(`${end === 0 ? 'ok' : 'not ok'} - ${name}: ${outcomeOf(end)}`)
  }
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

function outcomeOf(end: GuestEnd): string {
  return typeof end === 'number' ? `exit code ${end}` : end
}

exitOnInterrupt()
process.exitCode = await main()
