import { InvalidArgumentError } from 'commander'

/** For options that name a process. */
export function parsePid(text: string): number {
  const pid = Number(text)
  if (Number.isInteger(pid) && pid > 0) return pid
  throw new InvalidArgumentError('it must be the number of a process')
}
