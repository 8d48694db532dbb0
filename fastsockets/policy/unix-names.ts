import { resolve } from 'node:path'

/** What rules call a unix socket: its absolute path, or `@` and its abstract name, as the kernel's own lists do. */
export function nameInRules(path: string): string {
  return path.startsWith('\0') ? `@${path.slice(1)}` : resolve(path)
}

/** The path that a program would use. */
export function pathOfName(name: string): string {
  return name.startsWith('@') ? `\0${name.slice(1)}` : name
}
