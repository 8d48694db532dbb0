/** Feeds of native streams keep their order, and none is lost, whichever reader pauses and resumes. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { fastHandleClass } from '../../../fastsockets/handle/fast-handle.ts'
import type { FastHandleClass } from '../../../fastsockets/handle/fast-handle-contract.ts'
import { load, relink } from '../../../fastsockets/relink/preload.ts'
import { Child } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import { until } from '../../support/until.ts'

relink()
// Feeds need the event loop's own phase.
load()

/** What the native side of a handle has for the rest of it. */
interface Fed {
  readonly handle: { readonly isStreamBase: boolean }
  onread: (bytes: ArrayBuffer | undefined) => void
  handleData(bytes: Buffer): number
  readStart(): number
  readStop(): number
}

t.test('a piece that was held is not overtaken by one that was scheduled meanwhile', async t => {
  const Handle = fastHandleClass() as FastHandleClass
  const heard: string[] = []
  const open = (then: (text: string) => void): Fed => {
    const handle = new Handle(undefined, false) as unknown as Fed
    handle.onread = bytes => {
      const text = Buffer.from(bytes as ArrayBuffer).toString()
      heard.push(text)
      then(text)
    }
    // As code that attaches a native parser.
    t.ok(handle.handle.isStreamBase)
    handle.readStart()
    return handle
  }
  const stopping = open(text => void (text === 'A' && stopping.readStop()))
  const starting = open(() => void stopping.readStart())
  stopping.handleData(Buffer.from('A'))
  stopping.handleData(Buffer.from('B'))
  starting.handleData(Buffer.from('x'))
  stopping.handleData(Buffer.from('C'))
  await until('all pieces', () => heard.length === 4)
  t.strictSame(heard, ['A', 'x', 'B', 'C'])
})

t.test('a reader in a worker thread that is slower than the writer gets everything', async t => {
  const child = new Child(t, program('slow-worker'), [], relinked())
  const { transport, sent, received } = await child.receive<Record<string, string>>()
  t.equal(transport, 'loopback')
  t.equal(received, sent)
  t.equal(sent?.length, createHash('sha256').digest('hex').length)
})
