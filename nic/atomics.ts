/** `Atomics` as it was when this was loaded: a program may remove the global. */
export const atomics = globalThis.Atomics
