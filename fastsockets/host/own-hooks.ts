/**
 * Shows a fast socket to hooks of `async_hooks.createHook` as Node's own: one resource of the type TCPWRAP or
 * PIPEWRAP. The native stream under its handle, and the resources that this package makes for itself, are hidden.
 * Programs without hooks pay nothing.
 */
import asyncHooks, { type AsyncHook, type HookCallbacks } from 'node:async_hooks'
import { isHidden } from '../../nic/own-resources.ts'
import { define } from './define.ts'

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
  const init = hook[key]
  Object.defineProperty(hook, key, { get: () => (isHidden() ? undefined : init) })
}
