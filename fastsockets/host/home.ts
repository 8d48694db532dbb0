import { homedir } from 'node:os'

/** The user's folder; undefined if there is none: a user need not be known to the system, nor have a folder. */
export function home(): string | undefined {
  try {
    return homedir() || undefined
  } catch {
    return undefined
  }
}
