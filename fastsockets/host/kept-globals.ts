/** What programs may remove from the global object, as it was when this was loaded; undefined if it was gone by then. */
export const keptGlobals = {
  AbortController: globalThis.AbortController,
  Atomics: globalThis.Atomics,
  SharedArrayBuffer: globalThis.SharedArrayBuffer,
  WeakRef: globalThis.WeakRef,
} as const
