/** `Atomics` as it was when this module was loaded: a program may remove the global later. */
export const atomics = globalThis.Atomics
