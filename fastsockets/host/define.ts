/** Replaces a method; the new function has the name, length and property attributes of the old one. */
export function define(target: object, key: string | symbol, value: (...args: never[]) => unknown): void {
  const old = Object.getOwnPropertyDescriptor(target, key)
  const original = old?.value as ((...args: never[]) => unknown) | undefined
  if (original !== undefined) {
    Object.defineProperty(value, 'name', { value: original.name, configurable: true })
    Object.defineProperty(value, 'length', { value: original.length, configurable: true })
  }
  Object.defineProperty(target, key, { writable: true, enumerable: true, configurable: true, ...old, value })
}
