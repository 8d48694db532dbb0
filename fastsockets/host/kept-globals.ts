/** Globals that a program may delete, as they were when this file was loaded; undefined if already deleted by then. */
export const keptGlobals = {
  AbortController: globalThis.AbortController,
  Atomics: globalThis.Atomics,
  SharedArrayBuffer: globalThis.SharedArrayBuffer,
  WeakRef: globalThis.WeakRef,
} as const
