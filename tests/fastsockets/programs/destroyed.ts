/** A server, in this process or (`serve`) in one of its own, writes much and destroys the socket. Tells what a client gets. */
import { fork } from 'node:child_process'
import net, { type AddressInfo } from 'node:net'

const LENGTHS = [100, 300_000, 1_000_000]

function serve(tell: (port: number) => void): void {
  let count = 0
  const server = net.createServer(socket => {
    socket.write(Buffer.alloc(LENGTHS[count++ % LENGTHS.length] as number))
    socket.destroy()
  })
  server.listen(0, '127.0.0.1', () => tell((server.address() as AddressInfo).port))
}

function read(port: number): Promise<number> {
  return new Promise(resolve => {
    let received = 0
    const socket = net.connect(port, '127.0.0.1')
    socket.on('data', bytes => {
      received += bytes.length
    })
    socket.on('error', () => {}).on('close', () => resolve(received))
  })
}

async function readAll(port: number): Promise<number[]> {
  const received: number[] = []
  for (const _ of LENGTHS) received.push(await read(port))
  return received
}

if (process.argv[2] === 'serve') {
  serve(port => process.send?.(port))
} else {
  const server = fork(process.argv[1] as string, ['serve'])
  const otherPort = await new Promise<number>(resolve => server.once('message', resolve as never))
  serve(async port => {
    const received = [await readAll(port), await readAll(otherPort)]
    server.kill()
    process.send?.(received, () => process.exit())
  })
}
