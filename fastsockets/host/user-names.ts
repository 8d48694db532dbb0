/** Users by name, as /etc/passwd has them (passwd(5)). Users of a directory service have numbers only. */
import { readFileSync } from 'node:fs'

/** Undefined if the file has no such user. */
export function uidOfName(name: string): number | undefined {
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [own, , uid = ''] = line.split(':')
    if (own === name && /^\d+$/.test(uid)) return Number(uid)
  }
  return undefined
}
