import { createRequire } from 'node:module'

let rxjs: typeof import('rxjs') | undefined

/** Loads RxJS on first use: most users of sockets never do. */
export function loadRxjs(): typeof import('rxjs') {
  rxjs ??= createRequire(import.meta.url)('rxjs') as typeof import('rxjs')
  return rxjs
}
