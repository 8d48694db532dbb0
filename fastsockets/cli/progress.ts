/** Progress of a list of tasks, on stderr: standard output is for results only. */
import { DefaultRenderer, Listr, ListrLogger, type ListrTask, ProcessOutput } from 'listr2'

/** Forces the moving renderer; by default it depends on standard output, not stderr, being a terminal. */
class TerminalRenderer extends DefaultRenderer {
  static override nonTTY = true
}

class StderrOutput extends ProcessOutput {
  constructor() {
    super(process.stderr, process.stderr)
    // Restores the terminal's cursor on every exit.
    process.once('exit', () => {
      if (this.active) this.release()
    })
  }
}

/**
 * Runs the tasks one after the other; the first that fails ends it. Lines instead of movement if stderr is no
 * terminal.
 */
export async function runTasks(tasks: ListrTask[]): Promise<void> {
  const processOutput = new StderrOutput()
  await new Listr(tasks, {
    renderer: TerminalRenderer,
    rendererOptions: {
      logger: new ListrLogger({ processOutput, useIcons: true }),
      collapseSubtasks: false,
      formatOutput: 'wrap',
    },
    fallbackRenderer: 'verbose',
    fallbackRendererOptions: {
      logger: new ListrLogger({ processOutput, useIcons: false }),
      logTitleChange: false,
    },
    fallbackRendererCondition: () => !process.stderr.isTTY,
    // Interrupts are handled in interrupts.ts.
    registerSignalListeners: false,
  }).run()
}
