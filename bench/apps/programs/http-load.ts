/** Load on an HTTP server by autocannon: with keep-alive, and with a connection for each request. */
import autocannon from 'autocannon'
import { type Figure, HOST } from './program.ts'

const CONNECTIONS = 8
/** The warm-up as a share of the measured time. V8 takes seconds to compile the code of a connection. */
const WARM_UP = 3
/**
 * Of so many loads. With the first that begins after another has ended V8 meets what it has not seen, and compiles
 * much of autocannon, Node and what is below once more (`--trace-deopt`): for up to half a second there are half as
 * many answers, two thirds if it is plain.
 */
const WARM_UP_LOADS = 4
const TIMES_MAX = 512
/** The interval at which autocannon checks its time limit. */
const SAMPLE_MS = 10

export async function loadHttp(
  part: string,
  port: number,
  ms: number,
  connections: 'keep-alive' | 'connection each',
): Promise<Figure> {
  const load = (duration: number): Promise<autocannon.Result> =>
    autocannon({
      url: `http://${HOST}:${port}/`,
      connections: CONNECTIONS,
      duration,
      sampleInt: SAMPLE_MS,
      // Its own `reconnectRate: 1` counts no answers.
      ...(connections === 'connection each' && { headers: { connection: 'close' } }),
    })
  for (let i = 0; i < WARM_UP_LOADS; i++) await load((ms * WARM_UP) / WARM_UP_LOADS / 1000)
  let result = await load(ms / 1000)
  // On a machine that is slow, with a short time: until there is an answer.
  for (let times = 2; result.requests.total === 0 && times <= TIMES_MAX; times *= 2) {
    result = await load((ms * times) / 1000)
  }
  const { requests, duration, errors, non2xx } = result
  if (errors > 0 || non2xx > 0)
    throw new Error(`${part}: ${errors} errors, ${non2xx} answers that are not 2xx`)
  return { part, metric: 'rate', unit: '1/s', value: requests.total / duration }
}
