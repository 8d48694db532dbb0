/**
 * `import net from 'fastsockets'`: all exports of `node:net`, relinked, and `transportOf`.
 */
import net from 'node:net'
import { transportOf } from './handle/transport.ts'
import { RequiredError } from './policy/required-error.ts'
import { FALLBACK_REASONS } from './reasons.ts'
import { load, relink } from './relink/preload.ts'

relink()
load()

export * from 'node:net'
export { type Transport, transportOf } from './handle/transport.ts'
export type { PolicyEvent } from './policy/policy-watch.ts'
export { RequiredError } from './policy/required-error.ts'
export { FALLBACK_REASONS, type FallbackCode, type FallbackReason } from './reasons.ts'
export type {
  CloseEvent,
  ConnectionEvent,
  FallbackEvent,
  ListeningEvent,
  PromotedEvent,
  RefusedEvent,
} from './status/events.ts'

const ours = { transportOf, RequiredError, FALLBACK_REASONS }

/** `node:net` itself, with our own exports added. */
const fastsockets: typeof net & typeof ours = Object.assign(
  Object.create(Object.getPrototypeOf(net), Object.getOwnPropertyDescriptors(net)) as typeof net,
  ours,
)

export default fastsockets
