/**
 * The parser of http attaches itself to a native stream by `consume(handle)`. Node's own http reads `isStreamBase`
 * first, and attaches only after the connect. A program that has the parser by `process.binding` may do neither. This
 * file then tells the handle, and moves the parser along if the socket gets another handle while it connects.
 */
import { define } from '../host/define.ts'
import { type Parser, parsers } from '../host/parsed-handles.ts'
import { fastOf } from './fast-handle.ts'

const handles = new WeakMap<Parser, object>()
const wrapped = new WeakSet<Parser>()

/** The socket has `handle` now: the code that consumed `old` consumes that. */
export function moveConsumer(old: object, handle: object): void {
  const parser = parsers.get(old)
  if (parser === undefined) return
  parser.unconsume()
  parser.consume(handle)
}

/** `found`: what `process.binding` has returned for the name `http_parser`. */
export function noteParser(found: unknown): void {
  const { HTTPParser } = found as { HTTPParser?: { prototype?: Parser } }
  const prototype = HTTPParser?.prototype
  if (prototype?.consume === undefined || prototype.unconsume === undefined || wrapped.has(prototype)) return
  wrapped.add(prototype)
  const { consume, unconsume } = prototype
  define(prototype, 'consume', function (this: Parser, handle: object): void {
    fastOf(handle)?.noteNative()
    parsers.set(handle, this)
    handles.set(this, handle)
    consume.call(this, handle)
  })
  define(prototype, 'unconsume', function (this: Parser): void {
    const handle = handles.get(this)
    if (handle !== undefined) parsers.delete(handle)
    handles.delete(this)
    unconsume.call(this)
  })
}
