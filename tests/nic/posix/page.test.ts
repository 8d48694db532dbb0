import { spawnSync } from 'node:child_process'
import { readdirSync, readlinkSync } from 'node:fs'
import t from 'tap'
import { openPage, pageLink } from '../../../nic/index.ts'
import { loadLibc } from '../../../nic/posix/libc.ts'

const LENGTH = 8192
const { reason } = loadLibc()

t.test(
  'another process of the user can neither cut a page short nor make it longer',
  { skip: reason ?? false },
  async t => {
    const page = openPage('fastsockets-test-page', LENGTH) as ArrayBuffer
    const fd = readdirSync('/proc/self/fd').find(fd => linkOf(fd) === pageLink('fastsockets-test-page'))
    const path = `/proc/${process.pid}/fd/${fd}`
    for (const length of [0, 2 * LENGTH]) {
      const code = `try { fs.truncateSync('${path}', ${length}) } catch (error) { console.log(error.code) }`
      const { stdout } = spawnSync(process.execPath, ['-e', code], { encoding: 'utf8' })
      t.equal(stdout.trim(), 'EPERM', `${length} bytes`)
    }
    t.equal(new Uint8Array(page)[LENGTH - 1], 0, 'all of it is there')
  },
)

function linkOf(fd: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return undefined
  }
}
