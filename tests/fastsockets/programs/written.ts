/** argv: port, and what the program does right after a small write. */
import { spawnSync } from 'node:child_process'
import net from 'node:net'

const acts: Record<string, () => void> = {
  kill: () => process.kill(process.pid, 'SIGKILL'),
  abort: () => process.abort(),
  reallyExit: () => (process as unknown as { reallyExit(code: number): void }).reallyExit(3),
  block: () => void spawnSync('sleep', ['3']),
}
const socket = net.connect(Number(process.argv[2]), '127.0.0.1', () =>
  setTimeout(() => {
    socket.write('last words')
    acts[process.argv[3] as string]?.()
    socket.destroy()
  }, 50),
)
