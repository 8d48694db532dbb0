/**
 * Shows a fast socket to hooks of `async_hooks.createHook` as Node's own: one resource of the type TCPWRAP or
 * PIPEWRAP. The native stream under its handle, and the resources that this package makes for itself, are hidden.
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

/**
 * Node reads the `init` member for each resource. A getter, unlike a wrapper, adds no frame to stack traces in
 * `init`.
 */
function hideInit(hook: Record<symbol, unknown>): void {
  const key = Object.getOwnPropertySymbols(hook).find(({ description }) => description === 'init')
  if (key === undefined || typeof hook[key] !== 'function') return
  hasHooks = true
  const init = hook[key]
  Object.defineProperty(hook, key, { get: () => (isHidden() ? undefined : init) })
}

/**
 * Makes a resource that hooks see as the program's. Leak detectors take a stack trace in `init`. If the program has
 * called (`isCalled`), the limit is raised so that the trace reaches the program; otherwise the trace is empty, as
 * under libuv.
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
