/**
 * The part that `load` loads; undefined if it cannot be read now, as in a program that has no free descriptor. The caller then leaves
 * the socket as it is.
 */
export function tryLoad<T>(load: () => T): T | undefined {
  try {
    return load()
  } catch {
    return undefined
  }
}
