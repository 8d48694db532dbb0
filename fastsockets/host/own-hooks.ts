/**
 * Shows a fast socket to hooks of `async_hooks.createHook` as Node's own: one resource of the type TCPWRAP or
 * PIPEWRAP. The native stream under its handle, and the resources that this package makes for itself, are hidden.
 * Programs without hooks pay nothing.
 */
import asyncHooks, { type AsyncHook, type HookCallbacks } from 'node:async_hooks'
import { isHidden } from '../../nic/own-resources.ts'
import { define } from './define.ts'

type Init = (this: unknown, ...args: unknown[]) => unknown

/** Our frames between the program's call and the resource, at most. */
const OWN_FRAMES = 16

let isShowing = false

/**
 * Runs `make`, which makes a resource that hooks are shown. Detectors of open handles (why-is-node-running) take a stack
 * trace then, and name the program's line by it: our frames do not count towards `Error.stackTraceLimit`.
 */
export function makeShown<T>(make: () => T): T {
  const wasShowing = isShowing
  isShowing = true
  try {
    return make()
  } finally {
    isShowing = wasShowing
  }
}

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
  const init = hook[key] as Init
  const deepInit = deepen(init)
  Object.defineProperty(hook, key, {
    get: () => {
      if (isHidden()) return undefined
      return isShowing ? deepInit : init
    },
  })
}

function deepen(init: Init): Init {
  return function (this: unknown, ...args: unknown[]): unknown {
    const limit: unknown = Error.stackTraceLimit
    // A program may have frozen `Error`.
    if (typeof limit === 'number') Reflect.set(Error, 'stackTraceLimit', limit + OWN_FRAMES)
    try {
      return init.apply(this, args)
    } finally {
      if (typeof limit === 'number') Reflect.set(Error, 'stackTraceLimit', limit)
    }
  }
}
