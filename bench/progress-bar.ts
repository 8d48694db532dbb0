/** How far the bench is, on stderr: a bar on a terminal, a line for each suite elsewhere. */
import { Presets, SingleBar } from 'cli-progress'

export class ProgressBar {
  readonly #bar: SingleBar | undefined

  constructor(suite: string) {
    if (!process.stderr.isTTY) {
      process.stderr.write(`${suite}\n`)
      return
    }
    const format = `${suite.padEnd(15)} {bar} {percentage} % {what}`
    this.#bar = new SingleBar({ format, stream: process.stderr, barsize: 30 }, Presets.shades_classic)
    this.#bar.start(1, 0, { what: '' })
  }

  show(done: number, total: number, what: string): void {
    this.#bar?.setTotal(total)
    this.#bar?.update(done, { what })
  }

  /** For everything that is said before the bar has ended. */
  end(): void {
    this.#bar?.stop()
  }
}
