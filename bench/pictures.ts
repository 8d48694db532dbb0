/**
 * The seam to `pictures/`, which draws reports with a library that users may not have, and is loaded when it is
 * needed.
 */
import type { Report } from './result.ts'

/** The exports of `pictures/index.ts`. */
export interface Pictures {
  /** Writes one SVG file a picture into `directory`, which it creates. */
  writeSvg(report: Report, directory: string): Promise<void>
  /** Writes one HTML file that needs nothing else. */
  writeHtml(report: Report, file: string): Promise<void>
}

export async function loadPictures(): Promise<Pictures> {
  return (await import(new URL('./pictures/index.js', import.meta.url).href)) as Pictures
}
