/** Each iteration of the event loop has one share of time for what dead peers leave. */
import t from 'tap'
import { Departures } from '../../../fastsockets/stream/departures.ts'
import { realClock } from '../../../nic/clock.ts'

/** Time stands still but for `pass`, and `iterate` runs the immediates. */
class StoppedClock {
  readonly #immediates: (() => void)[] = []
  #nowMs = 0
  readonly clock = {
    ...realClock,
    now: () => this.#nowMs,
    setImmediate: (action: () => void) => void this.#immediates.push(action),
  }

  pass(ms: number): void {
    this.#nowMs += ms
  }

  iterate(): void {
    for (const action of this.#immediates.splice(0)) action()
  }
}

t.test('a share that is used up is followed by another one in the next iteration', async t => {
  const time = new StoppedClock()
  const departures = new Departures(time.clock)
  t.equal(departures.hasTime(), true)
  time.pass(1)
  t.equal(departures.hasTime(), false)
  time.iterate()
  t.equal(departures.hasTime(), true)
})

t.test('what waits is called in order, within one share, and after an action has thrown', async t => {
  const time = new StoppedClock()
  const departures = new Departures(time.clock)
  const log: string[] = []
  const note = (name: string) => () => void log.push(`${name} ${departures.hasTime()}`)
  departures.goOnLater(note('a'))
  departures.goOnLater(() => {
    time.pass(1)
    throw new Error('a listener')
  })
  departures.goOnLater(note('b'))
  departures.goOnLater(() => departures.goOnLater(note('c')))
  t.throws(() => time.iterate(), { message: 'a listener' })
  t.strictSame(log.splice(0), ['a true'])
  time.iterate()
  t.strictSame(log.splice(0), ['b true'])
  time.iterate()
  t.strictSame(log, ['c true'])
})

t.test('a program that polls and never comes to its next iteration has a share every 11 ms', async t => {
  const time = new StoppedClock()
  const departures = new Departures(time.clock)
  let shares = 0
  for (let ms = 0; ms < 110; ms++) {
    if (departures.hasTime()) shares++
    time.pass(1)
  }
  t.equal(shares, 10)
})
