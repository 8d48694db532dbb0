/** Words of status pages, as another process may have written them, and files that only have the name of a page. */
import { closeSync, ftruncateSync } from 'node:fs'
import { decodeStatus } from '../../../../fastsockets/status/decode-status.ts'
import { readStatusOf } from '../../../../fastsockets/status/read-status.ts'
import { HEADER, PAGE_NAME, PAGE_SIZE } from '../../../../fastsockets/status/status-layout.ts'
import { StatusPage } from '../../../../fastsockets/status/status-page.ts'
import { MFD_CLOEXEC } from '../../../../nic/posix/constants.ts'
import { requireLibc } from '../../../../nic/posix/libc.ts'
import type { Attack, Kind } from '../kind.ts'

const ROWS = 4
const REAL_ONE_IN = 200
const TEXT = ['\x1b[2J', '\u202e', '\u2066', '\0', '\u{e0041}', 'x'.repeat(500)] as const
const UNFIT = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

function somePage(): Buffer {
  const page = new StatusPage(new ArrayBuffer(PAGE_SIZE))
  for (let i = 0; i < ROWS; i++) {
    const place = { address: `/run/${i}`, port: i }
    page.open({
      kind: i === 0 ? 'listener' : 'net',
      transport: 'shm',
      role: 'server',
      local: place,
      remote: place,
    })
  }
  return Buffer.from(page.image)
}

export const statusPages: Kind = {
  name: 'status-page',
  what: 'words of status pages, and files with the name of one',
  reaches: ['page', 'no page', 'socket', 'listener', 'file'],
  open: () => ({
    attack({ random, inputs, victim, count, wrong }: Attack) {
      const good = somePage()
      for (let i = 0; i < inputs; i++) {
        const page = Buffer.from(random.chance(0.02) ? good.subarray(0, random.within(0, good.length)) : good)
        for (let words = random.within(1, 20); words > 0 && page.length >= 8; words--) {
          const at = random.within(0, page.length - 8) & ~7
          const isHead = at === 8 * HEADER.MAGIC || at === 8 * HEADER.VERSION
          if (isHead && random.chance(0.9)) continue
          const what = random.within(0, 2)
          if (what === 0) page.writeDoubleLE(random.within(-10, 1e9) / 3, at)
          else if (what === 1) random.bytes(8).copy(page, at)
          else page.write(random.pick(TEXT), at)
        }
        const status = victim(() => decodeStatus(page))
        count(status === undefined ? 'no page' : 'page')
        if (status === undefined) continue
        count('socket', status.sockets.length)
        count('listener', status.listeners.length)
        const texts = [status.program, ...[...status.sockets, ...status.listeners].map(({ local }) => local)]
        for (const text of texts) if (UNFIT.test(text)) wrong(JSON.stringify(text))
        if (random.within(1, REAL_ONE_IN) === 1) {
          const libc = requireLibc()
          const fd = libc.memfd_create(PAGE_NAME, MFD_CLOEXEC)
          ftruncateSync(fd, random.pick([0, 1, PAGE_SIZE - 1, PAGE_SIZE, 2 * PAGE_SIZE]))
          victim(() => readStatusOf(process.pid))
          count('file')
          closeSync(fd)
        }
      }
    },
    honest() {
      const { sockets, listeners } = decodeStatus(somePage()) ?? { sockets: [], listeners: [] }
      if (sockets.length !== ROWS - 1 || listeners.length !== 1) throw new Error(`${sockets.length} sockets`)
    },
  }),
}
