/**
 * `npm run test:containers`: tests of pairs of processes, with one process in each of two containers of this host; then, over
 * `tcp` and `ethernet`, on each of two hosts. Needs root and iproute2.
 *
 *   npm run test:containers -- [FILE...]
 */
import { noTwoHosts } from '../bench/two-hosts.ts'
import { makeApart } from './support/apart.ts'

const ALL = /./
/** The files, and which of their tests have two processes, without abstract names and process numbers. */
const FILES: Readonly<Record<string, RegExp>> = {
  'conformance/shm-in-process': ALL,
  'conformance/shm-two-processes': ALL,
  'fastsockets/schedules': ALL,
  'fastsockets/streams': /256 MB|stopped reader/,
  'interop/interop': /^(?!nginx|ioredis|pg)/,
  'am/endpoint-death': ALL,
  'am/endpoint-flood': ALL,
  // A process that has ended is unreachable from the other container.
  'am/endpoint-lifetime': /^(?!.*ends by itself)/,
  'am/endpoint-peers': ALL,
  'am/endpoint-returned': ALL,
  'am/endpoint-transfer': ALL,
  'am/rpc/connect': ALL,
  'am/rpc/ports': ALL,
  'am/rpc/services': ALL,
}

/** What runs on two hosts. */
const HOST_FILES = Object.entries(FILES).filter(([file]) => file.startsWith('am/'))

const ends: (() => unknown)[] = []
const without = noTwoHosts()
if (without) {
  console.log(`SKIPPED: the tests in two containers: ${without}`)
} else {
  const wanted = process.argv.slice(2)
  try {
    for (const driver of [undefined, 'tcp', 'ethernet']) {
      const run = makeApart({ teardown: end => ends.unshift(end) }, driver)
      for (const [file, names] of driver === undefined ? Object.entries(FILES) : HOST_FILES) {
        if (wanted.length > 0 && !wanted.includes(file)) continue
        const { status, stdout } = run(file, names)
        console.log(`${status === 0 ? 'ok' : 'FAILED'}  ${file}${driver === undefined ? '' : `, ${driver}`}`)
        if (status === 0) continue
        console.log(stdout)
        process.exitCode = 1
      }
    }
  } finally {
    for (const end of ends) end()
  }
}
