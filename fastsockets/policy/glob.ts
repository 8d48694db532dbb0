/**
 * A pattern for paths: `*` and `?` stay within one part of a path, `**` crosses them. A pattern without a slash is held
 * against the last part only.
 */
export function matchesGlob(path: string, pattern: string): boolean {
  return matchesWhole(pattern.includes('/') ? path : path.slice(path.lastIndexOf('/') + 1), pattern)
}

/** For names in which a slash is a letter like any other, but that only `**` crosses it. */
export function matchesWhole(name: string, pattern: string): boolean {
  return toExpression(pattern).test(name)
}

function toExpression(pattern: string): RegExp {
  const source = pattern.replace(/\*\*\/?|[*?]|[^*?]+/g, part => {
    if (part === '**/') return '(?:.*/)?'
    if (part === '**') return '.*'
    if (part === '*') return '[^/]*'
    if (part === '?') return '[^/]'
    return part.replace(/[\\^$.+()|[\]{}]/g, '\\$&')
  })
  return new RegExp(`^${source}$`, 's')
}
