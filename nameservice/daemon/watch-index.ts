/** Finds the watchers of a name without asking each of them. */
import type { WatchStream } from './watch-stream.ts'

type Streams = Set<WatchStream>

export class WatchIndex {
  readonly #byName = new Map<string, Streams>()
  /** Streams by the length of their prefix, then by the prefix. */
  readonly #byPrefix = new Map<number, Map<string, Streams>>()

  add(stream: WatchStream): void {
    for (const name of stream.filter.names) add(this.#byName, name, stream)
    for (const prefix of stream.filter.prefixes) {
      const { length } = prefix
      const prefixes = this.#byPrefix.get(length) ?? new Map<string, Streams>()
      this.#byPrefix.set(length, prefixes)
      add(prefixes, prefix, stream)
    }
  }

  remove(stream: WatchStream): void {
    for (const name of stream.filter.names) remove(this.#byName, name, stream)
    for (const prefix of stream.filter.prefixes) {
      const prefixes = this.#byPrefix.get(prefix.length)
      if (prefixes === undefined) continue
      remove(prefixes, prefix, stream)
      if (prefixes.size === 0) this.#byPrefix.delete(prefix.length)
    }
  }

  /** Calls `visit` for each watcher of `name`, perhaps more than once. */
  forEach(name: string, visit: (stream: WatchStream) => void): void {
    this.#byName.get(name)?.forEach(visit)
    for (const [length, prefixes] of this.#byPrefix) {
      if (length <= name.length) prefixes.get(name.slice(0, length))?.forEach(visit)
    }
  }
}

function add(map: Map<string, Streams>, key: string, stream: WatchStream): void {
  const streams = map.get(key)
  if (streams === undefined) map.set(key, new Set([stream]))
  else streams.add(stream)
}

function remove(map: Map<string, Streams>, key: string, stream: WatchStream): void {
  const streams = map.get(key)
  streams?.delete(stream)
  if (streams?.size === 0) map.delete(key)
}
