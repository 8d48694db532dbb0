/**
 * Hooks that a program makes by `createHook` hear of a fast socket as of one of Node's own: one resource of the type
 * TCPWRAP or PIPEWRAP. They do not hear of the native stream under its handle, nor of what this package makes for itself.
 * Programs without hooks pay nothing.
 */
import asyncHooks, { type HookCallbacks } from 'node:async_hooks'
import { isHidden } from '../../nic/index.ts'
import { define } from './define.ts'

export function hideFromHooks(): void {
  const { createHook } = asyncHooks
  define(asyncHooks, 'createHook', function createHook_(callbacks: HookCallbacks): asyncHooks.AsyncHook {
    const init = callbacks?.init
    if (typeof init !== 'function') return createHook(callbacks)
    const quiet: HookCallbacks['init'] = function (this: unknown, id, type, triggerId, resource) {
      if (!isHidden(triggerId)) init.call(this, id, type, triggerId, resource)
    }
    // The other callbacks may be inherited, or getters.
    return createHook(Object.create(callbacks, { init: { value: quiet, enumerable: true } }) as HookCallbacks)
  })
}
