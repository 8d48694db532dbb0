/**
 * Hooks that a program makes by `createHook` hear of a fast socket as of one of Node's own: one resource of the type
 * TCPWRAP or PIPEWRAP. They do not hear of the native stream under its handle, nor of what this package makes for itself.
 * Programs without hooks pay nothing.
 */
import asyncHooks, { type AsyncHook, type HookCallbacks } from 'node:async_hooks'
import { isHidden } from '../../nic/index.ts'
import { define } from './define.ts'

/** Frames of ours between a program's `connect` and the resource of its socket. */
const OWN_FRAMES_MAX = 12

let hasHooks = false

export function hideFromHooks(): void {
  const { createHook } = asyncHooks
  define(asyncHooks, 'createHook', function createHook_(callbacks: HookCallbacks): AsyncHook {
    const hook = createHook(callbacks)
    hideInit(hook as AsyncHook & Record<symbol, unknown>)
    return hook
  })
}

/** Node asks a hook for its `init` each time. A getter leaves no frame in the stack traces that `init` takes. */
function hideInit(hook: Record<symbol, unknown>): void {
  const key = Object.getOwnPropertySymbols(hook).find(({ description }) => description === 'init')
  if (key === undefined || typeof hook[key] !== 'function') return
  hasHooks = true
  const init = hook[key]
  Object.defineProperty(hook, key, { get: () => (isHidden() ? undefined : init) })
}

/**
 * Makes a resource of the program's. Detectors take a stack trace in `init`: it reaches up to the program, and is empty, as
 * libuv's would be, if the program has not called.
 */
export function makeShown<T>(isCalled: boolean, make: () => T): T {
  const { stackTraceLimit } = Error
  if (!hasHooks || typeof stackTraceLimit !== 'number') return make()
  Reflect.set(Error, 'stackTraceLimit', isCalled ? stackTraceLimit + OWN_FRAMES_MAX : 0)
  try {
    return make()
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit)
  }
}
