import { resolve } from 'node:path'

/** The name of a unix socket in rules: its absolute path, or `@` and its abstract name, as in /proc/net/unix. */
export function nameInRules(path: string): string {
  return path.startsWith('\0') ? `@${path.slice(1)}` : resolve(path)
}

/** The path by which a program opens the socket with this name. */
export function pathOfName(name: string): string {
  return name.startsWith('@') ? `\0${name.slice(1)}` : name
}
