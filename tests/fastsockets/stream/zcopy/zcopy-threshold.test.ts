/** Where the size from which on chunks are offered comes from. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import {
  crossover,
  fromEnvironment,
  THRESHOLD_MIN,
  thresholdOf,
} from '../../../../fastsockets/stream/zcopy/threshold.ts'
import {
  readThreshold,
  thresholdPath,
  writeThreshold,
} from '../../../../fastsockets/stream/zcopy/threshold-file.ts'

const DAY_MS = 24 * 3_600_000
process.env.XDG_CACHE_HOME = t.testdir()

t.test('measured: the smallest size from which on one copy is cheaper', async t => {
  const linear = (fixedUs: number) => (length: number) => ({
    twiceUs: (2 * length) / 1000,
    onceUs: fixedUs + length / 1000,
  })
  t.equal(crossover(linear(0)), 64 * 1024)
  t.equal(crossover(linear(10)), 128 * 1024)
  t.equal(crossover(linear(1e6)), Number.POSITIVE_INFINITY)
  t.equal(
    crossover(() => undefined),
    undefined,
  )
  t.test('by the driver', async t => {
    const { bytes, from } = thresholdOf('shm')
    t.ok(bytes >= THRESHOLD_MIN, `${bytes} bytes`)
    t.match(from, /measured|default/)
    if (from === 'measured') t.equal(readThreshold('shm'), bytes, 'and remembered')
    t.same(thresholdOf('loopback'), { bytes: 256 * 1024, from: 'default' }, 'which measures nothing')
  })
})

t.test('set by hand', async t => {
  t.equal(fromEnvironment(undefined), undefined)
  t.equal(fromEnvironment(''), undefined)
  t.equal(fromEnvironment('off')?.bytes, Number.POSITIVE_INFINITY)
  t.equal(fromEnvironment('1000000')?.bytes, 1_000_000)
  t.equal(fromEnvironment('1')?.bytes, THRESHOLD_MIN, 'never less than an offer is worth')
  for (const wrong of ['many', '-1', '1e6', '64k', ' 5']) {
    const warned = new Promise(resolve => process.once('warning', resolve))
    t.equal(fromEnvironment(wrong), undefined)
    t.match(await warned, { code: 'FASTSOCKETS_ZCOPY_THRESHOLD', message: new RegExp(`"${wrong}"`) })
  }
})

t.test('remembered, for a while, by kind of peer', async t => {
  const nowMs = Date.now()
  writeThreshold('one', 100_000, nowMs)
  writeThreshold('two', Number.POSITIVE_INFINITY, nowMs)
  t.equal(readThreshold('one', nowMs), 100_000)
  t.equal(readThreshold('two', nowMs), Number.POSITIVE_INFINITY)
  t.equal(readThreshold('three', nowMs), undefined)
  t.equal(readThreshold('one', nowMs + 29 * DAY_MS), 100_000)
  t.equal(readThreshold('one', nowMs + 31 * DAY_MS), undefined, 'too long ago')
  t.equal(readThreshold('one', nowMs - 1), undefined, 'a clock that was put back')
  t.equal(statSync(dirname(thresholdPath() as string)).mode & 0o777, 0o700)
})

t.test('a file that is spoilt, or cannot be written, is as good as none', async t => {
  for (const content of [
    '',
    '{',
    'null',
    '[]',
    '{"version":2,"thresholds":{}}',
    '{"version":1,"thresholds":null}',
  ]) {
    writeFileSync(thresholdPath() as string, content)
    t.equal(readThreshold('one'), undefined, content)
  }
  writeThreshold('one', 50_000)
  const text = readFileSync(thresholdPath() as string, 'utf8')
  for (const bytes of ['"5"', '-5', '0', '1.5', '{}', 'true']) {
    writeFileSync(thresholdPath() as string, text.replace('50000', bytes))
    t.equal(readThreshold('one'), undefined, bytes)
  }
  process.env.XDG_CACHE_HOME = '/proc/nowhere'
  writeThreshold('one', 50_000)
  t.equal(readThreshold('one'), undefined)
})

t.test('without a home nothing is remembered', async t => {
  for (const home of ['XDG_CACHE_HOME', 'HOME']) process.env[home] = ''
  t.equal(thresholdPath(), undefined)
  writeThreshold('one', 50_000)
  t.equal(readThreshold('one'), undefined)
})

t.test('what is no file of ours is not waited for, not followed, and not written to', async t => {
  process.env.XDG_CACHE_HOME = t.testdir({ target: 'untouched' })
  const target = join(process.env.XDG_CACHE_HOME, 'target')
  const nowMs = Date.now()
  writeThreshold('one', 100_000, nowMs)
  const path = thresholdPath() as string
  const others: [what: string, make: () => void][] = [
    ['a pipe', () => spawnSync('mkfifo', [path])],
    ['a link to a device without an end', () => symlinkSync('/dev/zero', path)],
    ['a link to a file', () => symlinkSync(target, path)],
  ]
  for (const [what, make] of others) {
    rmSync(path)
    make()
    t.equal(readThreshold('one', nowMs), undefined, what)
    symlinkSync(target, `${path}.${process.pid}`)
    writeThreshold('two', 200_000, nowMs)
    t.equal(readThreshold('two', nowMs), 200_000, `${what} is replaced`)
    t.equal(readFileSync(target, 'utf8'), 'untouched')
  }
  t.strictSame(readdirSync(dirname(path)), ['zcopy.json'])
})
