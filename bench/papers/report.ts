/** Each row of rows.ts with our number, and what they come to. */

import { PAPER_FIGURES } from '../document/papers.ts'
import { hereText } from '../document/papers-part.ts'
import type { Report } from '../result.ts'
import { FITS } from './machines.ts'
import { type PaperRow, ROWS } from './rows.ts'

/** `reproduced`: within 15 %. `near`: within 40 %. A bound is `kept` or `broken`; a figure has no verdict. */
export type Verdict = 'fitted' | 'reproduced' | 'near' | 'far' | 'kept' | 'broken' | 'none'

export interface PaperLine extends Omit<PaperRow, 'ours'> {
  readonly ours: number
  /** Of ours from theirs, as a share: 0.1 is 10 % more. Undefined without a number of theirs. */
  readonly difference: number | undefined
  /** The parameter that was fitted to this row. */
  readonly fitted: string | undefined
  readonly verdict: Verdict
}

/** A figure of a paper that real drivers are compared with, as a ratio to TCP of the same machine. */
export interface RatioLine {
  readonly paper: string
  readonly what: string
  readonly theirs: string
  readonly here: string
  readonly source: string
}

export interface PapersReport {
  readonly lines: readonly PaperLine[]
  readonly ratios: readonly RatioLine[]
  /** Rows with a number that nothing was fitted to, and how many of them are reproduced. */
  readonly counted: number
  readonly reproduced: number
  /** Largest difference of those, as a share. */
  readonly farthest: number
}

export const REPRODUCED = 0.15
export const NEAR = 0.4

export function reportPapers(baseline: Report): PapersReport {
  const lines = ROWS.map(lineOf)
  const counted = lines.filter(
    ({ verdict }) => verdict === 'reproduced' || verdict === 'near' || verdict === 'far',
  )
  return {
    lines,
    ratios: PAPER_FIGURES.flatMap(({ paper, what, timesAsFast, source, here }) =>
      timesAsFast === undefined || here === undefined
        ? []
        : [{ paper, what, theirs: timesAsFast, here: hereText(baseline, here), source }],
    ),
    counted: counted.length,
    reproduced: counted.filter(({ verdict }) => verdict === 'reproduced').length,
    farthest: Math.max(...counted.map(({ difference = 0 }) => Math.abs(difference))),
  }
}

function lineOf({ ours: measure, ...row }: PaperRow): PaperLine {
  const ours = measure()
  if (!Number.isFinite(ours)) throw new Error(`${row.id}: ${ours}`)
  const fitted = FITS.find(fit => fit.row === row.id)?.parameter
  const difference = row.theirs === undefined ? undefined : ours / row.theirs - 1
  return { ...row, ours, difference, fitted, verdict: verdictOf(row.kind, difference, fitted) }
}

function verdictOf(
  kind: PaperRow['kind'],
  difference: number | undefined,
  fitted: string | undefined,
): Verdict {
  if (difference === undefined) return 'none'
  if (kind === 'bound') return difference >= 0 ? 'kept' : 'broken'
  if (fitted !== undefined) return 'fitted'
  if (Math.abs(difference) <= REPRODUCED) return 'reproduced'
  return Math.abs(difference) <= NEAR ? 'near' : 'far'
}
