/** Reports as pictures, and as a page. Loaded through `../pictures.ts`, as it needs echarts. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Report } from '../result.ts'
import { choosePictures } from './choose-pictures.ts'
import { drawSvg } from './draw-svg.ts'
import { htmlPage } from './html-page.ts'
import type { Drawn } from './picture.ts'

export async function drawPictures(report: Report): Promise<Drawn[]> {
  const drawn: Drawn[] = []
  for (const picture of choosePictures(report)) drawn.push({ picture, svg: await drawSvg(picture) })
  return drawn
}

export async function writeSvg(report: Report, directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true })
  for (const { picture, svg } of await drawPictures(report)) {
    writeFileSync(join(directory, `${picture.name}.svg`), svg)
  }
}

export async function writeHtml(report: Report, file: string): Promise<void> {
  writeFileSync(file, htmlPage(report, await drawPictures(report)))
}
