/** Native code that attaches itself to the handle of a socket that is still connecting, as no module of Node does. */
import t from 'tap'
import { Child } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

interface Told {
  readonly heard: readonly string[]
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

const HEARD = ['headers', 'first', 'other']

t.test('a parser that has consumed a connecting socket hears of its bytes', { skip }, async t => {
  for (const [server, client, transport] of [
    [undefined, undefined, 'tcp'],
    [relinked(), relinked(), 'shm'],
    [undefined, relinked(), 'tcp'],
  ] as const) {
    const port = await new Child(t, program('consumed'), [], server).receive<number>()
    const told = await new Child(t, program('consumed'), [String(port)], client).receive<Told>()
    t.strictSame(told, { heard: HEARD, transport })
  }
})
