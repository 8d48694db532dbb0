import t from 'tap'
import { PollLoop } from '../../am/poll-loop.ts'

const SLOW_POLLS = 20
/** Longer than the time after which a program that polls asks for its peers. */
const GAP_MS = 12

function computeFor(ms: number): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

for (const handled of [0, 1]) {
  t.test(`a program that computes between polls of ${handled} messages asks for its peers at each`, t => {
    const pollLoop = new PollLoop()
    let heard = 0
    const peers = { checkNow: () => void heard++ }
    for (let i = 0; i < SLOW_POLLS; i++) {
      computeFor(GAP_MS)
      pollLoop.handlePoll(handled, peers)
    }
    t.equal(heard, SLOW_POLLS)
    t.end()
  })

  t.test(`one that only polls, ${handled} messages each time, asks for them now and then`, t => {
    const pollLoop = new PollLoop()
    let heard = 0
    const peers = { checkNow: () => void heard++ }
    let polls = 0
    const endMs = performance.now() + 10 * GAP_MS
    while (performance.now() < endMs || heard < 2) {
      pollLoop.handlePoll(handled, peers)
      polls++
    }
    t.ok(heard < polls / 10, `${heard} times in ${polls} polls`)
    t.end()
  })
}
