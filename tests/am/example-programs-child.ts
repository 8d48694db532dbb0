/**
 * Four programs that are typical of active messages, each split between two hosts: ping-pong (by hand), a shared counter
 * (calls), a word count (RxJS) and the halo exchange of a simulation (long messages). The test asks for one after the other.
 */
import { from, lastValueFrom, map, mergeMap, reduce } from 'rxjs'
import { type Endpoint, type EndpointOptions, OK, openEndpoint } from '../../am/index.ts'

export type Question =
  /** Opens the endpoints of the side that is called, and runs what it serves. */
  | { readonly ask: 'serve'; readonly driver: string }
  | { readonly ask: 'ping-pong' | 'counter' | 'word-count'; readonly names: Names }
  /** Both sides at the same time: `names` of all workers, in their order. */
  | { readonly ask: 'halo'; readonly workers: readonly string[] }
  | { readonly ask: 'close' }

export interface Names {
  readonly pingPong: string
  readonly counter: string
  readonly counting: readonly string[]
  readonly halo: readonly string[]
}

const ASK = 1
const ANSWER = 2
const STOP = 3
export const ROUNDS = 2000
export const CLIENTS = 3
export const EACH = 200
export const LINES = 300
const WORKERS = 2
export const CELLS = 50
export const STEPS = 100
const LEFT = 0
const RIGHT = 1
/** Of a halo: two generations, since a neighbour may be one step ahead, of a left and a right value of 8 bytes. */
const HALO_SIZE = 4 * 8

const opened: Endpoint[] = []
let options: EndpointOptions = {}
let isClosing = false
const halo: { endpoint: Endpoint; arrived: number[] }[] = []

process.on('message', (question: Question) => {
  void answer(question).then(found => process.send?.(found))
})

async function open(more: EndpointOptions = {}): Promise<Endpoint> {
  const endpoint = await openEndpoint({ ...options, ...more })
  opened.push(endpoint)
  return endpoint
}

async function answer(question: Question): Promise<object> {
  switch (question.ask) {
    case 'serve':
      options = { drivers: ['loopback', question.driver], listen: '0.0.0.0:7400' }
      return await serve()
    case 'ping-pong':
      return { answered: await pingPong(question.names.pingPong) }
    case 'counter':
      return { last: await count(question.names.counter) }
    case 'word-count':
      return { words: await countWords(question.names.counting) }
    case 'halo': {
      const { workers } = question
      const own = halo.map(({ endpoint }) => workers.indexOf(endpoint.name))
      return { parts: await Promise.all(own.map((place, index) => simulate(place, index, workers))) }
    }
    case 'close':
      isClosing = true
      await Promise.all(opened.map(endpoint => endpoint.close()))
      return {}
  }
}

async function serve(): Promise<Names> {
  const pinged = await open({ progress: 'manual' })
  void answerPings(pinged)
  const counter = await open()
  let value = 0
  counter.setHandler(ASK, message => {
    value += message.word(0)
    message.reply(ANSWER, value)
  })
  const counting: string[] = []
  for (let worker = 0; worker < WORKERS; worker++) {
    const endpoint = await open()
    endpoint.messages(ASK).subscribe(message => {
      const counts: Record<string, number> = {}
      for (const word of message
        .payload()
        .toString()
        .match(/[a-z]+/g) ?? [])
        counts[word] = (counts[word] ?? 0) + 1
      message.replyMedium(ANSWER, Buffer.from(JSON.stringify(Object.entries(counts))))
    })
    counting.push(endpoint.name)
  }
  for (let worker = 0; worker < WORKERS; worker++) {
    const endpoint = await open({ segment: HALO_SIZE })
    const arrived = [0, 0]
    endpoint.setHandler(ASK, message => {
      arrived[message.word(0)] = (arrived[message.word(0)] as number) + 1
    })
    halo.push({ endpoint, arrived })
  }
  return {
    pingPong: pinged.name,
    counter: counter.name,
    counting,
    halo: halo.map(({ endpoint }) => endpoint.name),
  }
}

async function answerPings(endpoint: Endpoint): Promise<void> {
  let isOver = false
  endpoint.setHandler(ASK, message => message.reply(ANSWER, message.word(0)))
  endpoint.setHandler(STOP, message => {
    isOver = true
    message.reply(ANSWER, 0)
  })
  await endpoint.wait()
  while (!isOver && !isClosing) endpoint.poll()
}

async function pingPong(name: string): Promise<number> {
  const endpoint = await open({ progress: 'manual' })
  let answered = 0
  endpoint.setHandler(ANSWER, message => {
    if (message.word(0) === answered + 1) answered++
  })
  await endpoint.map(0, name)
  for (let round = 1; round <= ROUNDS; round++) {
    endpoint.request(0, ASK, round)
    while (answered < round) endpoint.poll()
  }
  let isStopped = false
  endpoint.setHandler(ANSWER, () => {
    isStopped = true
  })
  endpoint.request(0, STOP)
  while (!isStopped) endpoint.poll()
  return answered
}

/** The value that the last of several clients has seen. */
async function count(name: string): Promise<number> {
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const endpoint = await open()
      await endpoint.map(0, name)
      let last = 0
      for (let i = 0; i < EACH; i++) last = (await endpoint.call(0, ASK, undefined, [1])).word(0)
      return last
    }),
  )
  return Math.max(...clients)
}

async function countWords(names: readonly string[]): Promise<object> {
  const endpoint = await open()
  for (const [worker, name] of names.entries()) await endpoint.map(worker, name)
  const lines = Array.from({ length: LINES }, (_, i) => `the quick brown fox jumps over the dog number ${i}`)
  const counts$ = from(lines).pipe(
    mergeMap(
      (line, i) => endpoint.call(i % names.length, ASK, Buffer.from(line), undefined),
      4 * names.length,
    ),
    map(reply => JSON.parse(reply.payload().toString()) as [string, number][]),
    reduce((all, some) => {
      for (const [word, count] of some) all.set(word, (all.get(word) ?? 0) + count)
      return all
    }, new Map<string, number>()),
  )
  return Object.fromEntries(await lastValueFrom(counts$))
}

/** One step of the heat equation; the first and the last cell belong to the neighbours. */
export function spread(cells: Float64Array): Float64Array {
  const last = cells.length - 1
  const at = (i: number): number => cells[i] as number
  return cells.map((x, i) => (i === 0 || i === last ? x : x + 0.25 * (at(i - 1) - 2 * x + at(i + 1))))
}

/** The worker's part of the rod, after all steps. */
async function simulate(place: number, index: number, workers: readonly string[]): Promise<number[]> {
  const { endpoint, arrived } = halo[index] as (typeof halo)[number]
  const memory = endpoint.segment
  const received = new Float64Array(memory.buffer, memory.byteOffset, HALO_SIZE / 8)
  const neighbours = [LEFT, RIGHT].filter(side => workers[place + (side === LEFT ? -1 : 1)] !== undefined)
  for (const side of neighbours) await endpoint.map(side, workers[place + (side === LEFT ? -1 : 1)] as string)
  let cells = new Float64Array(CELLS + 2)
  if (place === 0) cells[1] = 1000
  for (let step = 0; step < STEPS; step++) {
    const generation = step % 2
    for (const side of neighbours) {
      const edge = new Uint8Array(new Float64Array([cells[side === LEFT ? 1 : CELLS] as number]).buffer)
      const theirSide = 1 - side
      const offset = 8 * (2 * generation + theirSide)
      while (endpoint.requestLong(side, ASK, edge, offset, theirSide) !== OK) await endpoint.ready(side)
    }
    while (neighbours.some(side => (arrived[side] as number) <= step)) await endpoint.wait()
    for (const side of neighbours)
      cells[side === LEFT ? 0 : CELLS + 1] = received[2 * generation + side] as number
    cells = new Float64Array(spread(cells))
    if (place === 0) cells[0] = cells[1] as number
    if (place === workers.length - 1) cells[CELLS + 1] = cells[CELLS] as number
  }
  return [...cells.subarray(1, CELLS + 1)]
}
