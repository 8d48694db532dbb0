/** What native code has written is freed soon, if it is a copy of Node's. */
import t from 'tap'
import { processBinding } from '../../../fastsockets/host/process-binding.ts'
import { copiesWrites, freeNow } from '../../../fastsockets/host/spent-memory.ts'

type Streams = Parameters<typeof copiesWrites>

t.test('this Node copies what is written, and another one that does not is told from it', async t => {
  const { JSStream } = processBinding('js_stream') as { JSStream: Streams[0] }
  const { WriteWrap } = processBinding('stream_wrap') as { WriteWrap: Streams[1] }
  t.equal(copiesWrites(JSStream, WriteWrap), true)
  class Lender {
    onwrite(_request: object, _buffers: readonly Uint8Array[]): number {
      return 0
    }
    writeBuffer(request: object, bytes: Uint8Array): number {
      return this.onwrite(request, [bytes])
    }
  }
  t.equal(copiesWrites(Lender, WriteWrap), false)
  class Silent extends Lender {
    override writeBuffer(): number {
      return 0
    }
  }
  t.equal(copiesWrites(Silent, WriteWrap), false)
})

t.test('whole buffers are emptied; slices, and buffers that are not worth it, stay', async t => {
  const whole = new Uint8Array(8192)
  const slice = new Uint8Array(new ArrayBuffer(16_384), 0, 8192)
  const small = new Uint8Array(1024)
  freeNow([whole, slice, small])
  freeNow([new Uint8Array(64 * 1024)])
  t.equal(whole.byteLength, 0)
  t.equal(slice.byteLength, 8192)
  t.equal(small.byteLength, 1024)
})
