export interface Walk {
  readonly count: number
  readonly thrown: readonly string[]
}

/** All that can be reached by keys, symbols and getters, of objects and of their prototypes. */
export function walk(root: object): Walk {
  const seen = new Set<unknown>([root])
  const thrown: string[] = []
  const left: object[] = [root]
  for (let object = left.pop(); object !== undefined; object = left.pop()) {
    if (ArrayBuffer.isView(object) || object === process || object === globalThis) continue
    for (let at = object; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
      for (const key of Reflect.ownKeys(at)) {
        let value: unknown
        try {
          value = Reflect.get(at, key, object)
        } catch {
          thrown.push(`${object.constructor?.name}.${String(key)}`)
        }
        if (typeof value !== 'object' || value === null || seen.has(value)) continue
        seen.add(value)
        left.push(value)
      }
    }
  }
  return { count: seen.size, thrown }
}
