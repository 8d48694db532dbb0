/**
 * A check handle of libuv: the event loop calls its callback with no JavaScript on the stack. libuv calls the handle
 * that was started last first. So the callback runs before Node's own check handle, which runs the immediates.
 */
type Koffi = typeof import('koffi', { with: { 'resolution-mode': 'import' }})

const UV_CHECK = 2
const UV_IDLE = 6
/** Bytes of room for `uv_metrics_t`. Its first word is `loop_count`: how often the loop has entered its poll phase. */
const METRICS_SIZE = 128

export interface IoPhase {
  /** Calls the callback in every iteration from now on. Keeps the process alive. */
  start(): void
  stop(): void
  /** Whether the event loop would wait for I/O if this were stopped: no immediate, timer or close callback is due. */
  wouldWait(): boolean
  /**
   * How often the event loop has entered its poll phase, modulo 2^32 (`loop_count` of uv_metrics_info). NaN, which
   * equals no count, if libuv does not report it.
   */
  lookCount(): number
}

/** Makes handles on the event loop of this thread. Undefined if libuv refuses them. */
export type OpenIoPhase = (callback: () => void) => IoPhase | undefined

export function bindIoPhase(koffi: Koffi, library: ReturnType<Koffi['load']>): OpenIoPhase {
  // libuv passes the handle as an argument. The prototype leaves it out, which saves a BigInt in each iteration.
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
  // An active idle handle keeps the loop from waiting for I/O. It needs a callback; this one has no effect.
  const harmless = library.symbol('uv_is_active')
  const getMetrics = bindMetrics(library)
  return callback => {
    const loop: unknown[] = [null]
    if (getLoop(koffi.node.env, loop) !== 0) return undefined
    // Never freed: the event loop refers to the handles as long as the thread lives.
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
        // An active idle handle makes the timeout 0. It is started again for programs that run the loop in a listener.
        stopIdle(idle)
        const timeoutMs = backendTimeout(loop[0])
        startIdle(idle, harmless)
        return timeoutMs !== 0
      },
      lookCount: () => (getMetrics?.(loop[0], metrics) === 0 ? (metrics[0] as number) : Number.NaN),
    }
  }
}

/** Undefined in Node 20.0 to 20.2, whose libuv has no `uv_metrics_info`. */
function bindMetrics(
  library: ReturnType<Koffi['load']>,
): ((loop: unknown, metrics: Uint32Array) => number) | undefined {
  try {
    return library.func('int uv_metrics_info(void *loop, void *metrics)')
  } catch {
    return undefined
  }
}
