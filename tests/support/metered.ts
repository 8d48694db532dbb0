/** Preloaded: measures the turns of this program's event loop when it is asked to, over IPC. */
import { StallMeter, usedMs } from './stall-meter.ts'

interface Question {
  readonly meter?: 'begin' | 'end' | 'block'
  readonly forMs?: number
}

const meter = new StallMeter()

process.on('message', ({ meter: what, forMs = 0 }: Question) => {
  if (what === 'begin') {
    meter.begin()
    process.send?.({ longestMs: 0 })
  } else if (what === 'end') process.send?.({ longestMs: meter.end() })
  else if (what === 'block') for (const endMs = usedMs() + forMs; usedMs() < endMs; );
})
