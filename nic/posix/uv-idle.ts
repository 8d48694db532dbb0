/** An idle handle of libuv: its callback is called by the event loop itself, with no JavaScript below it. */
type Koffi = typeof import('koffi')

const UV_IDLE = 6

import type { Idle } from './idle.ts'

/** Makes a handle on the event loop of this thread; undefined if Node does not show libuv's functions. */
export type OpenIdle = (callback: () => void) => Idle | undefined

export function bindIdle(koffi: Koffi, library: ReturnType<Koffi['load']>): OpenIdle {
  const callbackType = koffi.pointer(koffi.proto('void', ['void *']))
  const getLoop = library.func('int napi_get_uv_event_loop(void *env, _Out_ void **loop)')
  const sizeOf = library.func('size_t uv_handle_size(int type)')
  const initialize = library.func('int uv_idle_init(void *loop, void *handle)')
  const start = library.func('uv_idle_start', 'int', ['void *', callbackType])
  const stop = library.func('int uv_idle_stop(void *handle)')
  return callback => {
    const loop: unknown[] = [null]
    if (getLoop(koffi.node.env, loop) !== 0) return undefined
    // Never freed: the handle belongs to the event loop, which lives as long as the thread.
    const handle = koffi.alloc('char', Number(sizeOf(UV_IDLE)))
    if (initialize(loop[0], handle) !== 0) return undefined
    const registered = koffi.register(callback, callbackType)
    return {
      start: () => void start(handle, registered),
      stop: () => void stop(handle),
    }
  }
}
