/** The table of docs/papers.md, between two markers. */
import { table } from '../document/markdown.ts'
import type { PaperLine, PapersReport } from './report.ts'

export const BEGIN = '<!-- made by npm run bench:papers -- --write -->'
export const END = '<!-- end -->'
const DIGITS = 4

/** Throws if the page has no markers. */
export function withTables(page: string, report: PapersReport): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`the page needs ${BEGIN} and ${END}`)
  return `${page.slice(0, begin)}${BEGIN}\n\n${tables(report)}\n\n${page.slice(end)}`
}

export function tables(report: PapersReport): string {
  const { lines } = report
  const papers = [...new Set(lines.map(({ paper }) => paper))]
  const parts = papers.map(paper => {
    const rows = lines.filter(line => line.paper === paper).map(cellsOf)
    return table([paper, 'section', 'paper', 'ours', 'difference', 'through'], rows, 2)
  })
  return `${sumOf(report)}\n\n${parts.join('\n\n')}`
}

export function sumOf({ counted, reproduced, farthest }: Omit<PapersReport, 'lines' | 'ratios'>): string {
  const share = Math.round((100 * reproduced) / counted)
  const off = Math.round(100 * farthest)
  return `Of ${counted} numbers that nothing was fitted to, ${reproduced} are within 15 %: ${share} %. None is off by more than ${off} %.`
}

export function cellsOf({ what, source, theirs, ours, unit, kind, by, ...line }: PaperLine): string[] {
  return [
    unit === '' ? what : `${what}, ${unit}`,
    source,
    theirs === undefined ? '' : `${kind === 'bound' ? '≥ ' : ''}${short(theirs)}`,
    short(ours),
    differenceOf(line),
    by,
  ]
}

function differenceOf({ verdict, difference }: Pick<PaperLine, 'verdict' | 'difference'>): string {
  if (verdict === 'none') return ''
  if (verdict === 'fitted' || verdict === 'kept' || verdict === 'broken') return verdict
  const percent = Math.round(100 * (difference as number))
  return `${percent > 0 ? '+' : ''}${percent} %`
}

function short(value: number): string {
  return String(Number(value.toPrecision(value >= 1000 ? DIGITS : DIGITS - 1)))
}
