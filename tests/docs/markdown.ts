/** What the documentation tests need to know of a Markdown page: its blocks, links, anchors, sentences and words. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** Folders that hold no page of ours. */
const SKIPPED = new Set(['node_modules', 'dist', '.git', '.tap', '.current-node'])
const FENCE = /^ {0,3}(```+)\s*(.*)$/
const NOT_RUN = /^<!-- not run here: (.+) -->$/
const NEEDS = /^<!-- needs: (.+) -->$/

export interface Block {
  /** The first word behind the fence, such as `js`. */
  readonly language: string
  /** What follows it. */
  readonly info: string
  readonly text: string
  /** The line of the opening fence, from 1 on. */
  readonly line: number
  /** Why the tests do not run it; undefined if they do. */
  readonly notRun: string | undefined
  /** Commands of the system that it calls; without them it is skipped, by name. */
  readonly needs: readonly string[]
}

export interface Page {
  /** From the root, with slashes. */
  readonly path: string
  readonly text: string
}

export function readPages(root: string): Page[] {
  const found: Page[] = []
  const visit = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isDirectory() && !SKIPPED.has(entry.name)) visit(path)
      else if (entry.isFile() && entry.name.endsWith('.md'))
        found.push({ path: relative(root, path), text: readFileSync(path, 'utf8') })
    }
  }
  visit(root)
  return found.sort((a, b) => a.path.localeCompare(b.path))
}

export function blocksOf(text: string): Block[] {
  const blocks: Block[] = []
  const lines = text.split('\n')
  for (let i = 0; i < lines.length; i++) {
    const [, fence, info = ''] = FENCE.exec(lines[i] as string) ?? []
    if (fence === undefined) continue
    const line = i + 1
    const body: string[] = []
    for (i++; i < lines.length && !(lines[i] as string).trimStart().startsWith(fence); i++)
      body.push(lines[i] as string)
    const [language = '', ...rest] = info.trim().split(/\s+/)
    const mark = lines[line - 2]?.trim() ?? ''
    const notRun = NOT_RUN.exec(mark)?.[1]
    const needs = NEEDS.exec(mark)?.[1]?.split(' ') ?? []
    blocks.push({ language, info: rest.join(' '), text: `${body.join('\n')}\n`, line, notRun, needs })
  }
  return blocks
}

/** The page with every fenced block emptied, so that line numbers stay. */
export function withoutBlocks(text: string): string {
  let fence: string | undefined
  return text
    .split('\n')
    .map(line => {
      const opened = FENCE.exec(line)?.[1]
      if (fence === undefined) {
        fence = opened
        return opened === undefined ? line : ''
      }
      if (line.trimStart().startsWith(fence)) fence = undefined
      return ''
    })
    .join('\n')
}

/** The targets of links and pictures. */
export function linksOf(text: string): string[] {
  const prose = withoutBlocks(text).replace(/`[^`]*`/g, code => code.replace(/[^`]/g, ' '))
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
}

/** The names that a `#…` may point to, as GitHub makes them of headings. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, heading = ''] of withoutBlocks(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const name = heading
      .trim()
      .toLowerCase()
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    let unique = name
    for (let count = 1; anchors.has(unique); count++) unique = `${name}-${count}`
    anchors.add(unique)
  }
  return anchors
}

/** As `wc -w` counts. */
export function wordCount(text: string): number {
  return text.split(/\s+/).filter(word => word !== '').length
}

/** Sentences of prose and lists; not of tables, headings and blocks. */
export function sentencesOf(text: string): string[] {
  const paragraphs = withoutBlocks(text)
    .replace(/<!--[\s\S]*?-->/g, '')
    .split('\n')
    .map(line => (/^\s*(\||#|!\[)/.test(line) ? '' : line.replace(/^\s*([-*]|\d+\.)\s+/, '\n\n')))
    .join('\n')
    .split(/\n\s*\n/)
  return paragraphs.flatMap(paragraph =>
    paragraph
      .replace(/\s+/g, ' ')
      .split(/(?<=[.!?][)"'`*]*)\s+(?=[\p{Lu}`*["(\d])/u)
      .map(sentence => sentence.trim())
      .filter(sentence => sentence !== ''),
  )
}

/** The first column of every table row below `heading`, or of the whole page: each code span by itself. */
export function codeRows(text: string, heading = ''): string[] {
  const section = heading === '' ? text : (text.slice(text.indexOf(heading)).split(/\n## /)[0] ?? '')
  const cells = [...section.matchAll(/^\| ((?:`[^`]+`(?:, )?)+)\s*\|/gm)].map(([, cell = '']) => cell)
  return cells.flatMap(cell => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))
}
