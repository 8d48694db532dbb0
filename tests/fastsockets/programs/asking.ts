/**
 * What a program can ask of a socket in unusual ways. Sends what it has seen. argv: one of the tasks below, and a server's port.
 * The server must echo.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import net, { type AddressInfo, type Socket } from 'node:net'
import { PerformanceObserver } from 'node:perf_hooks'

/** Long enough for a server to answer and die. */
const BUSY_MS = 500
const [task = '', port = '0'] = process.argv.slice(2)
const open = (options = {}): Socket => net.connect({ port: Number(port), host: '127.0.0.1', ...options })
const tell = (seen: unknown): void => void process.send?.(seen)
const codeOf = (error: unknown): unknown => (error as NodeJS.ErrnoException).code

const TASKS: Record<string, () => void> = {
  /** What is asked for keeps the program alive, though the socket itself does not. */
  'unref at once'() {
    process.disconnect?.()
    open().unref().end('all of it')
  },
  'connect twice'() {
    const socket = open()
    socket.connect(Number(port), '127.0.0.1')
    socket.on('error', error => tell([codeOf(error), socket.destroyed]))
  },
  /** Received data is delivered although a waiting write fails, and all of it arrived before the program could read. */
  'an early answer'() {
    const socket = open()
    let bytes = 0
    socket.on('data', data => {
      bytes += data.length
    })
    socket.on('error', error => tell([bytes, codeOf(error)]))
    socket.on('connect', () => {
      socket.write(Buffer.alloc(20_000_000))
      for (const beganMs = performance.now(); performance.now() - beganMs < BUSY_MS; ) {}
    })
  },
  /** It is the one that hears, and closes the handle. */
  'another owner'() {
    const first = open()
    const seen: string[] = []
    first.on('data', () => seen.push('the first'))
    first.on('connect', () => {
      const { _handle: handle } = first as unknown as { _handle: { hasRef(): boolean } }
      Object.assign(first, { _handle: null })
      const second = new net.Socket({ handle } as never)
      second.on('data', data => {
        seen.push(`the second: ${data}, ${handle.hasRef()}`)
        second.end()
      })
      second.on('close', () => setImmediate(() => tell([...seen, Boolean(handle.hasRef())])))
      second.write('hello')
    })
  },
  'strange ports'() {
    const seen = [Symbol('port'), {}, null, true].map(strange => {
      try {
        return net.connect({ port: strange as never }).destroy().closed
      } catch (error) {
        return codeOf(error)
      }
    })
    tell(seen)
  },
  contexts() {
    const storage = new AsyncLocalStorage<string>()
    const seen: string[] = []
    const note = (what: string) => () => void seen.push(`${what}: ${storage.getStore()}`)
    const socket = storage.run('connect', () => open())
    const end = (): void => {
      note('write')()
      storage.run('end', () => socket.end(note('end')))
    }
    socket.on('connect', () => storage.run('write', () => socket.write(Buffer.alloc(20_000_000), end)))
    socket.resume().on('close', () => tell(seen))
  },
  'a reader that throws'() {
    let bytesRead = 0
    let thrown = 0
    process.on('uncaughtException', () => {
      thrown++
    })
    const callback = (length: number): boolean => {
      bytesRead += length
      if (bytesRead <= 20) throw new Error('not now')
      return true
    }
    const socket = open({ onread: { buffer: Buffer.alloc(10), callback } })
    socket.end('x'.repeat(45)).on('close', () => tell({ bytesRead, thrown }))
  },
  'measured connects'() {
    const seen: string[] = []
    const observer = new PerformanceObserver(list => {
      seen.push(...list.getEntries().map(({ name }) => name))
    })
    observer.observe({ entryTypes: ['net'] })
    const socket = open()
    socket.resume().end('x')
    socket.on('close', () => setImmediate(() => tell(seen)))
  },
  /** For a socket that came over TCP: a request for its own address gets no other. */
  'names after the end'() {
    const seen: string[] = []
    const server = net.createServer(socket => {
      socket.resume().on('close', () => {
        seen.push(String(socket.remoteAddress))
        server.close(() => tell(seen))
      })
    })
    server.listen(0, '127.0.0.1', () => {
      const place = { port: (server.address() as AddressInfo).port, localAddress: '127.0.0.1' }
      const socket = open(place).on('connect', () => {
        seen.push(String(socket.remoteAddress))
        socket.end()
      })
    })
  },
}

process.on('message', () => {})
TASKS[task]?.()
process.on('disconnect', () => task !== 'unref at once' && process.exit())
