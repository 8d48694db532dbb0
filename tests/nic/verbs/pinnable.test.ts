/** How much a process may pin: the kernel's limit, for processes to which it applies. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { halfOfPinnable, pinnableBytes } from '../../../nic/verbs/pinnable.ts'

const limitsWith = (soft: string): string =>
  [
    'Limit                     Soft Limit           Hard Limit           Units     ',
    'Max processes             63412                63412                processes ',
    `Max locked memory         ${soft.padEnd(20)} unlimited            bytes     `,
    'Max address space         unlimited            unlimited            bytes     ',
  ].join('\n')
const statusWith = (capabilities: string): string =>
  `Name:\tnode\nCapPrm:\t000001ffffffffff\nCapEff:\t${capabilities}\nCapBnd:\t000001ffffffffff\n`
const NONE = statusWith('0000000000000000')
const IPC_LOCK_ONLY = statusWith('0000000000004000')
const ALL_BUT_IPC_LOCK = statusWith('000001ffffffbfff')

t.test('the soft limit counts, unless there is none, or the process is not held to it', async t => {
  t.equal(pinnableBytes(limitsWith('8388608'), NONE), 8388608)
  t.equal(pinnableBytes(limitsWith('0'), NONE), 0)
  t.equal(pinnableBytes(limitsWith('unlimited'), NONE), Number.POSITIVE_INFINITY)
  t.equal(pinnableBytes(limitsWith('8388608'), IPC_LOCK_ONLY), Number.POSITIVE_INFINITY)
  t.equal(pinnableBytes(limitsWith('8388608'), ALL_BUT_IPC_LOCK), 8388608)
  t.equal(pinnableBytes('', ''), Number.POSITIVE_INFINITY, 'nothing is said')
  t.equal(pinnableBytes(limitsWith('65536'), ''), 65536)
})

t.test('one user of it gets half at most, and what it wants at most', async t => {
  const own = pinnableBytes(
    readFileSync('/proc/self/limits', 'utf8'),
    readFileSync('/proc/self/status', 'utf8'),
  )
  t.equal(halfOfPinnable(4096), Math.min(4096, Math.floor(own / 2)))
  t.equal(
    halfOfPinnable(Number.POSITIVE_INFINITY),
    own === Number.POSITIVE_INFINITY ? own : Math.floor(own / 2),
  )
})
