/**
 * `npm run bench:document -- REPORT.json [OTHER.json ...]`: writes docs/performance.md with its pictures, and the picture and
 * figures of README.md. What other reports reach, of other Nodes, stands beside.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { drawPictures } from '../pictures/index.ts'
import { readReport } from '../read-report.ts'
import type { Report } from '../result.ts'
import { runCommand } from '../run-command.ts'
import { performanceDocument } from './document.ts'
import { hasReadmeFigures, README_PICTURE, readmePicture, withFigures } from './readme-picture.ts'

const DOCS = fileURLToPath(new URL('../../../docs/', import.meta.url))

const command = new Command('bench:document')
  .description('docs/performance.md and its pictures, from the JSON of a run')
  .argument('<report>', 'what `fastsockets bench --json` printed')
  .argument('[others...]', 'reports of other Nodes, whose ratios stand beside')
  .option('--docs <directory>', 'where to write', DOCS)
  .action(async (file: string, otherFiles: string[], { docs }: { docs: string }) => {
    const report = readReport(file)
    const others = otherFiles.map(readReport)
    const drawn = await drawPictures(report)
    const page = performanceDocument(
      report,
      drawn.map(({ picture }) => picture),
      others,
    )
    const directory = join(docs, 'performance')
    mkdirSync(directory, { recursive: true })
    // Pictures of earlier runs may not be among those of this one.
    for (const name of readdirSync(directory)) if (name.endsWith('.svg')) rmSync(join(directory, name))
    for (const { picture, svg } of drawn) writeFileSync(join(directory, `${picture.name}.svg`), svg)
    writeFileSync(join(docs, 'performance.md'), page)
    if (hasReadmeFigures(report)) await writeReadme(report, docs)
  })

async function writeReadme(report: Report, docs: string): Promise<void> {
  const picture = join(docs, README_PICTURE)
  mkdirSync(dirname(picture), { recursive: true })
  writeFileSync(picture, await readmePicture(report))
  const readme = join(docs, '../README.md')
  if (existsSync(readme)) writeFileSync(readme, withFigures(readFileSync(readme, 'utf8'), report))
}

await runCommand(command)
