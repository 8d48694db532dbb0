/** Runs one command like a shell's `exec`: same descriptors, same signals, same exit code. */
import { spawn } from 'node:child_process'
import { exitCodeOfSignal, NOT_EXECUTABLE, NOT_FOUND } from '../exit-codes.ts'

const FORWARDED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Resolves with the exit code for this process. */
export function launch(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(command, args, { stdio: 'inherit', env })
  for (const signal of FORWARDED_SIGNALS) {
    process.on(signal, () => {
      if (!comesFromTerminal(signal)) child.kill(signal)
    })
  }
  return new Promise(resolve => {
    child.on('error', (error: NodeJS.ErrnoException) => {
      // With a pid, the error is only a signal that could not be passed on.
      if (child.pid === undefined) resolve(explain(command, error))
    })
    child.once('exit', (code, signal) => {
      resolve(signal === null ? (code ?? 0) : exitCodeOfSignal(signal))
    })
  })
}

/** A terminal sends Ctrl-C to the child too; a second one would make many programs stop at once. */
function comesFromTerminal(signal: NodeJS.Signals): boolean {
  return signal === 'SIGINT' && process.stdin.isTTY
}

function explain(command: string, error: NodeJS.ErrnoException): number {
  if (error.code === 'ENOENT') {
    console.error(`fastsockets: ${command}: command not found`)
    return NOT_FOUND
  }
  console.error(`fastsockets: ${command}: cannot be run (${error.code ?? error.message})`)
  return NOT_EXECUTABLE
}
