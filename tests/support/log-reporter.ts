/**
 * tap's reporter for logs: a line a file, what was skipped, everything about what failed, and at the very end the files
 * that failed. `npx tap --reporter=./dist/tests/support/log-reporter.js`
 */
import { Transform, type TransformCallback } from 'node:stream'
import { inspect } from 'node:util'
import { Parser, type Result } from 'tap-parser'

/** What tap says of a failure beside what can be read elsewhere. */
const NOT_SHOWN = ['at', 'source', 'stdio', 'cwd', 'externalID', 'command', 'args', 'jobId']
/** Tests skip what a machine cannot do by a comment with this word where only part of a test is concerned. */
const SKIPPED = /^# SKIPPED/

// A default export, because tap takes a reporter in no other form.
export default class LogReporter extends Transform {
  readonly #parser = new Parser(results => this.#end(results.ok))
  readonly #failed: string[] = []
  #fileCount = 0
  /** About the file whose tests are being read. */
  #notes: string[] = []

  constructor() {
    super({ encoding: 'utf8' })
    this.#parser.on('child', child => this.#listen(child))
    this.#parser.on('assert', result => this.#endFile(result))
    this.#parser.on('bailout', reason => this.push(`BAIL OUT ${reason}\n`))
  }

  override _transform(chunk: Buffer | string, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#parser.write(String(chunk))
    done()
  }

  override _flush(done: TransformCallback): void {
    this.#parser.end()
    done()
  }

  #listen(parser: Parser): void {
    parser.on('child', child => this.#listen(child))
    parser.on('comment', comment => {
      if (SKIPPED.test(comment)) this.#notes.push(`  ${comment.slice(2).trim()}`)
    })
    parser.on('assert', result => {
      const path = `${parser.fullname} > ${result.name}`
      if (result.skip) this.#notes.push(`  SKIPPED ${path}: ${result.skip}`)
      // A test whose parts failed says nothing beyond them.
      else if (!result.ok && !result.todo && !result.closingTestPoint)
        this.#notes.push(...failure(path, result))
    })
  }

  #endFile(result: Result): void {
    this.#fileCount++
    const seconds = ((result.time ?? 0) / 1000).toFixed(1)
    this.push(`${result.ok ? 'passed' : 'FAILED'} ${seconds.padStart(6)} s  ${result.name}\n`)
    if (!result.ok) {
      this.#failed.push(result.name)
      this.#notes.push(...failure(result.name, result))
    }
    for (const note of this.#notes) this.push(`${note}\n`)
    this.#notes = []
  }

  #end(isOk: boolean): void {
    this.push(`\n${this.#fileCount} files, ${this.#failed.length} failed${isOk ? '' : ':'}\n`)
    for (const name of this.#failed) this.push(`  ${name}\n`)
  }
}

function failure(path: string, { diag, tapError }: Result): string[] {
  const shown = Object.entries((diag ?? {}) as Record<string, unknown>).filter(
    ([name]) => !NOT_SHOWN.includes(name),
  )
  const lines = shown.flatMap(([name, value]) =>
    `${name}: ${typeof value === 'string' ? value : inspect(value, { depth: 6, breakLength: 110 })}`
      .trimEnd()
      .split('\n'),
  )
  return [`  FAILED ${path}`, ...(tapError === null ? [] : [tapError]), ...lines.map(line => `    ${line}`)]
}
