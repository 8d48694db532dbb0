/**
 * Listens, and hands what it has to a child (handed-child.ts). argv: what ('socket', 'paused', 'keep-open', 'server',
 * 'stdio'), the child's preload or ''. Says { port }, then what it and the child have seen. Any message kills the child.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import net, { type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'

const [what = 'socket', preload = ''] = process.argv.slice(2)
const CHILD = fileURLToPath(new URL('./handed-child.js', import.meta.url))

let child: ChildProcess | undefined

function theChild(): ChildProcess {
  child ??= startChild()
  return child
}

function startChild(): ChildProcess {
  const child = fork(CHILD, { execArgv: preload === '' ? [] : ['--require', preload] })
  child.on('message', message => message !== 'listening' && process.send?.(message))
  return child
}

const server = net.createServer({ pauseOnConnect: what === 'paused', allowHalfOpen: true }, socket => {
  if (what === 'stdio') {
    spawn('cat', { stdio: [socket, socket, 'inherit'] })
    socket.destroy()
    return
  }
  theChild().send({ hand: 'socket' }, socket, { keepOpen: what === 'keep-open' }, error => {
    process.send?.({ sent: error?.message ?? 'ok' })
    if (what === 'keep-open') socket.end('parent')
  })
})

server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  if (what !== 'server') return process.send?.({ port })
  theChild().send({ hand: 'server' }, server)
  server.close()
  theChild().once('message', () => process.send?.({ port }))
})
process.on('message', () => child?.kill('SIGKILL'))
process.on('disconnect', () => process.exit())
