import { homedir } from 'node:os'

/** The user's home folder; undefined if the user has none, or is not in the system's user database. */
export function home(): string | undefined {
  try {
    return homedir() || undefined
  } catch {
    return undefined
  }
}
