/**
 * `npm run test:rdma`: boots a real Linux kernel with a software RDMA device in an emulator and runs the tests of
 * tests/rdma/in-guest there. Exit code: 0 passed or skipped, 1 failed. See tests/rdma/README.md.
 */
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { runGuest } from './guest.ts'
import { type GuestImage, prepareImage } from './guest-image.ts'

const IN_GUEST = fileURLToPath(new URL('./in-guest/', import.meta.url))
const TIMEOUT_MS = 240_000

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

async function main(): Promise<number> {
  const image = findImage()
  if (image === undefined) return 0
  const tests = chosenTests(process.argv.slice(2))
  const status = await runGuest(image, {
    prefix: '',
    script: 'one.sh',
    environment: { TESTS: tests.join(' '), TAP_TIMEOUT: `${TIMEOUT_MS / 1000}` },
    network: [],
    timeoutMs: TIMEOUT_MS,
  })
  console.log(status === undefined ? 'not ok - the guest did not come to its end' : `# guest: ${status}`)
  return status === 0 ? 0 : 1
}

process.exitCode = await main()
