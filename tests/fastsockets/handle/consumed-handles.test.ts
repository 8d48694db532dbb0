/** Native code that attaches itself to the handle of a socket that is still connecting, as no module of Node does. */
import t from 'tap'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

interface Told {
  readonly heard: string
  readonly transport: string
}

/** Newer Node keeps its parser to itself. */
function hasParser(): boolean {
  const { binding } = process as unknown as { binding(name: string): unknown }
  try {
    return binding('http_parser') !== undefined
  } catch {
    return false
  }
}

const skip = !hasParser() && `Node ${process.version} has no parser of http in process.binding`

const HEARD = 'headers firstother'

const PAUSE_MS = 20
/** Five of them are long enough for a move. */
const MOVE_MS = 250
/** Its connections would move at once. */
const moving = relinked({
  env: { ...plainEnvironment(), FASTSOCKETS_START: 'tcp', FASTSOCKETS_ABLATE: 'price=0' },
})

t.test('a parser that has consumed a connecting socket hears of its bytes', { skip }, async t => {
  for (const [server, client, transport] of [
    [undefined, undefined, 'tcp'],
    [relinked(), relinked(), 'shm'],
    [undefined, relinked(), 'tcp'],
    [moving, moving, 'tcp'],
  ] as const) {
    const pauseMs = client === moving ? MOVE_MS : PAUSE_MS
    const port = await new Child(t, program('consumed'), ['serve', String(pauseMs)], server).receive<number>()
    const told = await new Child(t, program('consumed'), ['ask', String(port)], client).receive<Told>()
    t.strictSame(told, { heard: HEARD, transport })
  }
})
