/** How far the bench is, on stderr: a bar on a terminal, a line for each suite elsewhere. */
import { Presets, SingleBar } from 'cli-progress'

export class ProgressBar {
  readonly #suite: string
  readonly #startMs = performance.now()
  readonly #bar: SingleBar | undefined

  constructor(suite: string) {
    this.#suite = suite
    if (!process.stderr.isTTY) return
    const format = `${suite.padEnd(15)} {bar} {percentage} % {what}`
    this.#bar = new SingleBar({ format, stream: process.stderr, barsize: 30 }, Presets.shades_classic)
    this.#bar.start(1, 0, { what: '' })
  }

  show(done: number, total: number, what: string): void {
    this.#bar?.setTotal(total)
    this.#bar?.update(done, { what })
  }

  end(): void {
    this.#bar?.stop()
    if (this.#bar !== undefined) return
    const seconds = (performance.now() - this.#startMs) / 1000
    process.stderr.write(`${this.#suite}: ${seconds.toFixed(1)} s\n`)
  }
}
