/** Programs from npm: how many times as fast as plain they are relinked. */
import type { Result } from '../result.ts'
import { timesAsFast } from '../times-as-fast.ts'
import type { Picture } from './picture.ts'

export function appPictures(results: readonly Result[]): Picture[] {
  const compared = results.filter(({ ratio }) => ratio !== undefined)
  if (compared.length === 0) return []
  const names = [...new Set(compared.map(appName))]
  const contestants = [...new Set(compared.map(({ contestant }) => contestant))]
  return [
    {
      name: 'apps-speedup',
      title: 'apps: times as fast as plain, over TCP',
      kind: 'bars',
      x: { title: '', scale: 'names', unit: '', names },
      y: { title: 'times as fast as net-tcp', scale: 'linear', unit: 'x' },
      series: contestants.map(contestant => ({
        name: contestant,
        points: compared
          .filter(result => result.contestant === contestant)
          .map(result => [names.indexOf(appName(result)), timesAsFast(result)] as const),
      })),
    },
  ]
}

function appName({ parameters }: Result): string {
  return `${parameters.app}: ${parameters.part}`
}
