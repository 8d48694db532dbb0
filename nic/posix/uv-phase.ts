/**
 * A check handle of libuv: its callback is called by the event loop itself, with no JavaScript below it. The last that was
 * started comes first, so it comes before Node's own, which was started with Node and runs the immediates.
 */
type Koffi = typeof import('koffi')

const UV_CHECK = 2
const UV_IDLE = 6
/** Of `uv_metrics_t`, whose first word counts how often the event loop has begun to look for I/O. */
const METRICS_SIZE = 128

import type { IoPhase } from './io-phase.ts'

/** Makes handles on the event loop of this thread; undefined if Node does not show libuv's functions. */
export type OpenIoPhase = (callback: () => void) => IoPhase | undefined

export function bindIoPhase(koffi: Koffi, library: ReturnType<Koffi['load']>): OpenIoPhase {
  // It is called with the handle, in a register that nobody needs to look at: a BigInt less in each turn.
  const callbackType = koffi.pointer(koffi.proto('void', []))
  const getLoop = library.func('int napi_get_uv_event_loop(void *env, _Out_ void **loop)')
  const sizeOf = library.func('size_t uv_handle_size(int type)')
  const initializeCheck = library.func('int uv_check_init(void *loop, void *handle)')
  const startCheck = library.func('uv_check_start', 'int', ['void *', callbackType])
  const stopCheck = library.func('int uv_check_stop(void *handle)')
  const initializeIdle = library.func('int uv_idle_init(void *loop, void *handle)')
  const startIdle = library.func('int uv_idle_start(void *handle, void *callback)')
  const stopIdle = library.func('int uv_idle_stop(void *handle)')
  const backendTimeout = library.func('int uv_backend_timeout(void *loop)')
  // An idle handle must call something. What is wanted is only that the loop does not wait for I/O.
  const harmless = library.symbol('uv_is_active')
  const getMetrics = bindMetrics(library)
  return callback => {
    const loop: unknown[] = [null]
    if (getLoop(koffi.node.env, loop) !== 0) return undefined
    // Never freed: the handles belong to the event loop, which lives as long as the thread.
    const check = koffi.alloc('char', Number(sizeOf(UV_CHECK)))
    const idle = koffi.alloc('char', Number(sizeOf(UV_IDLE)))
    if (initializeCheck(loop[0], check) !== 0 || initializeIdle(loop[0], idle) !== 0) return undefined
    const registered = koffi.register(callback, callbackType)
    const metrics = new Uint32Array(METRICS_SIZE / 4)
    return {
      start: () => {
        startCheck(check, registered)
        startIdle(idle, harmless)
      },
      stop: () => {
        stopCheck(check)
        stopIdle(idle)
      },
      wouldWait: () => {
        // It makes the loop say that something is due. Whoever runs the loop from within a listener needs it back.
        stopIdle(idle)
        const timeoutMs = backendTimeout(loop[0])
        startIdle(idle, harmless)
        return timeoutMs !== 0
      },
      lookCount: () => (getMetrics?.(loop[0], metrics) === 0 ? (metrics[0] as number) : Number.NaN),
    }
  }
}

/** Not in Node 20.0 to 20.2. */
function bindMetrics(
  library: ReturnType<Koffi['load']>,
): ((loop: unknown, metrics: Uint32Array) => number) | undefined {
  try {
    return library.func('int uv_metrics_info(void *loop, void *metrics)')
  } catch {
    return undefined
  }
}
