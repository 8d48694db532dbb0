import { spawnSync } from 'node:child_process'
import t from 'tap'
import { CoreContention } from '../../../am/progress/core-contention.ts'
import { type CoreTimes, readCoreTimes } from '../../../nic/index.ts'
import { plainEnvironment } from '../../support/child.ts'

const BURN_MS = 60

/** A thread that is always runnable, asks once in a millisecond, and waits for its core for a part of the time. */
class Thread {
  waitedShare = 0
  nowMs = 1000
  #ranMs = 0
  #waitedMs = 0
  readonly contention = new CoreContention(
    (): CoreTimes => ({ ranMs: this.#ranMs, waitedMs: this.#waitedMs }),
  )

  /** For how many of so many milliseconds it may not spin. */
  run(ms: number): number {
    let contendedMs = 0
    for (let i = 0; i < ms; i++) {
      this.nowMs++
      this.#waitedMs += this.waitedShare
      this.#ranMs += 1 - this.waitedShare
      if (this.contention.isContended(this.nowMs)) contendedMs++
    }
    return contendedMs
  }
}

t.test('a thread that has its core to itself spins', async t => {
  t.equal(new Thread().run(1000), 0)
})

t.test('so does one that shares it with the threads of the collector, or with one program more', async t => {
  const thread = new Thread()
  thread.waitedShare = 0.5
  t.equal(thread.run(1000), 0)
  for (let i = 0; i < 20; i++) {
    thread.waitedShare = 0.9
    t.equal(thread.run(16), 0, 'a moment is not enough')
    thread.waitedShare = 0
    thread.run(16)
  }
  const cold = new Thread()
  cold.waitedShare = 0.9
  t.equal(cold.run(36), 0, 'nor is the first sample, which the compiler took')
  cold.waitedShare = 0
  t.equal(cold.run(1000), 0)
})

t.test(
  'one that waits most of the time spins ever more rarely, and at once when the queue is gone',
  async t => {
    const thread = new Thread()
    thread.waitedShare = 0.9
    t.ok(thread.run(100) >= 56)
    thread.run(20_000)
    t.ok(thread.run(10_000) > 9_900, 'less than one in a hundred')
    thread.waitedShare = 0
    thread.run(5_000)
    t.equal(thread.run(1000), 0)
  },
)

t.test('one sample is not enough, as the collector may have had the core', async t => {
  const thread = new Thread()
  thread.waitedShare = 0.9
  thread.run(100)
  thread.waitedShare = 0
  while (thread.run(1) > 0);
  for (let i = 0; i < 5; i++) {
    thread.waitedShare = 0.9
    t.equal(thread.run(8), 0)
    thread.waitedShare = 0
    t.equal(thread.run(8), 0)
  }
  thread.waitedShare = 0.9
  t.ok(thread.run(40) > 0)
})

t.test('where the system does not say, it is asked once, and no contention is assumed', async t => {
  let questions = 0
  const contention = new CoreContention(() => {
    questions++
    return 'never'
  })
  const answers = Array.from({ length: 100 }, (_, nowMs) => contention.isContended(nowMs))
  t.notOk(answers.includes(true))
  t.equal(questions, 1)
})

t.test('where it cannot be asked now it is asked again', async t => {
  let questions = 0
  const contention = new CoreContention(() => {
    questions++
    return undefined
  })
  for (let nowMs = 0; nowMs < 100; nowMs++) t.notOk(contention.isContended(nowMs))
  t.equal(questions, 4)
})

t.test('a process without descriptors asks again when it has some', async t => {
  const program = `
    import { closeSync, openSync } from 'node:fs'
    import { readCoreTimes } from '${new URL('../../../nic/posix/core-times.js', import.meta.url)}'
    const files = []
    try {
      for (;;) files.push(openSync('/dev/null'))
    } catch {}
    const without = readCoreTimes()
    files.forEach(file => closeSync(file))
    console.log(typeof without, typeof readCoreTimes())`
  const shell = [
    '-c',
    'ulimit -n 100; exec "$0" "$@"',
    process.execPath,
    '--input-type=module',
    '-e',
    program,
  ]
  const { stdout } = spawnSync('/bin/sh', shell, { encoding: 'utf8', env: plainEnvironment() })
  t.equal(stdout.trim(), 'undefined object')
})

t.test('the system says how long this thread has had a core', async t => {
  const before = readCoreTimes()
  if (typeof before !== 'object') return t.fail('no schedstat here')
  const endMs = performance.now() + BURN_MS
  while (performance.now() < endMs);
  const after = readCoreTimes() as CoreTimes
  const ranMs = after.ranMs - before.ranMs
  const waitedMs = after.waitedMs - before.waitedMs
  t.ok(ranMs > 0)
  t.ok(waitedMs >= 0)
  t.ok(ranMs + waitedMs > BURN_MS / 2, `${ranMs} ms, and ${waitedMs} ms of waiting`)
})
