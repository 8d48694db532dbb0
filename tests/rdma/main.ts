/**
 * `npm run test:rdma`: boots a real Linux kernel with a software RDMA device in an emulator and runs the tests of
 * tests/rdma/in-guest there. Exit code: 0 passed or skipped, 1 failed. See tests/rdma/README.md.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { REGISTER } from '../support/relinked.ts'
import { runGuest } from './guest.ts'
import { type GuestImage, prepareImage } from './guest-image.ts'

const IN_GUEST = fileURLToPath(new URL('./in-guest/', import.meta.url))
const PROGRAM = fileURLToPath(new URL('./programs/pair.js', import.meta.url))
/** Until the first emulator listens for the second. */
const SOCKET_PAUSE_MS = 100
const TIMEOUT_MS = 480_000
/** Emulated processors are slow. */
const ENVIRONMENT = {
  TAP_TIMEOUT: `${TIMEOUT_MS / 1000}`,
  FASTSOCKETS_GREETING_TIMEOUT_MS: '10000',
}

function findImage(): GuestImage | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') return skip('the guest is a Linux x64 kernel')
  try {
    return prepareImage()
  } catch (error) {
    return skip((error as Error).message.split('\n')[0] as string)
  }
}

function skip(reason: string): undefined {
  console.log(`SKIPPED: the tests over RDMA: ${reason}`)
}

/** All, or those whose names contain one of the arguments. */
function chosenTests(words: readonly string[]): string[] {
  return readdirSync(IN_GUEST)
    .filter(name => name.endsWith('.guest.js'))
    .filter(name => words.length === 0 || words.some(word => name.includes(word)))
    .map(name => `${IN_GUEST}${name}`)
}

/** One host, with everything that one host can show. */
function runAlone(image: GuestImage, words: readonly string[]): Promise<number | undefined> {
  const tests = chosenTests(words)
  return runGuest(image, {
    prefix: '',
    script: 'one.sh',
    environment: { ...ENVIRONMENT, TESTS: tests.join(' ') },
    network: [],
    timeoutMs: TIMEOUT_MS,
  })
}

/** Two hosts with boot ids of their own; the second has no RDMA device at first. */
async function runPair(image: GuestImage): Promise<number | undefined> {
  const socket = join(dirname(image.initrd), `wire-${process.pid}`)
  const guest = (number: 1 | 2, environment: Record<string, string>): Promise<number | undefined> =>
    runGuest(image, {
      prefix: `host ${number}: `,
      script: 'pair.sh',
      environment: {
        ...ENVIRONMENT,
        ADDRESS: `10.78.0.${number}`,
        PROGRAM,
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
  while (!existsSync(socket)) await pause(SOCKET_PAUSE_MS)
  const client = guest(2, { ROLE: 'call' })
  const [served, called] = await Promise.all([server, client])
  rmSync(socket, { force: true })
  return served === undefined || called === undefined ? undefined : served || called
}

async function main(): Promise<number> {
  const image = findImage()
  if (image === undefined) return 0
  const words = process.argv.slice(2)
  const isChosen = (name: string): boolean => words.length === 0 || words.includes(name)
  const runs: [name: string, run: () => Promise<number | undefined>][] = []
  if (chosenTests(words).length > 0) runs.push(['one host', () => runAlone(image, words)])
  if (isChosen('pair')) runs.push(['two hosts', () => runPair(image)])
  let failed = 0
  for (const [name, run] of runs) {
    const status = await run()
    if (status !== 0) failed++
    const outcome = status === undefined ? 'did not come to its end' : `exit code ${status}`
    console.log(`${status === 0 ? 'ok' : 'not ok'} - ${name}: ${outcome}`)
  }
  console.log(`${runs.length - failed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

process.exitCode = await main()
