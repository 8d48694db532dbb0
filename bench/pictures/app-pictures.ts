/** Packages from npm: how many times as fast as plain they are relinked. */
import type { Result } from '../result.ts'
import { timesAsFast } from '../times-as-fast.ts'
import type { Picture } from './picture.ts'
import { RATIO_SPREAD, ratioSpreadOf } from './spread.ts'
import { withDirection } from './titles.ts'

export function appPictures(results: readonly Result[]): Picture[] {
  const compared = results.filter(({ ratio }) => ratio !== undefined)
  if (compared.length === 0) return []
  const names = [...new Set(compared.map(appName))]
  const contestants = [...new Set(compared.map(({ contestant }) => contestant))]
  return [
    {
      name: 'apps-speedup',
      title: withDirection('Packages from npm, relinked: times as fast as over TCP', 'higher'),
      kind: 'bars',
      x: { title: '', scale: 'names', unit: '', names },
      y: { title: 'times as fast as plain TCP', scale: 'linear', unit: 'x' },
      reference: { value: 1, name: 'plain TCP' },
      spread: RATIO_SPREAD,
      series: contestants.map(contestant => ({
        name: contestant,
        points: compared
          .filter(result => result.contestant === contestant)
          .map(result => ({
            x: names.indexOf(appName(result)),
            y: timesAsFast(result),
            ...ratioSpreadOf(result),
          })),
      })),
    },
  ]
}

function appName({ parameters }: Result): string {
  return `${parameters.app}: ${parameters.part}`
}
