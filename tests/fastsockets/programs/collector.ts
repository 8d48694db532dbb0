/**
 * What the garbage collector has to do. argv: server | sender port | dialer port | http2-server | http2-client port.
 * The servers say after each gigabyte how often the whole heap was marked for it; the dialer opens and closes connections,
 * and says how many bytes each has added to what only a full collection frees.
 */
import http2 from 'node:http2'
import net from 'node:net'
import { constants, PerformanceObserver } from 'node:perf_hooks'
import v8 from 'node:v8'

const GIGABYTE = 1e9
const CONNECTIONS = 4000
const AT_ONCE = 8

const [role, port = '0'] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

const roles: Record<string, () => void> = {
  server: serve,
  sender: send,
  dialer: dial,
  'http2-server': serveHttp2,
  'http2-client': askHttp2,
}
roles[role as string]?.()

function serve(): void {
  const count = gigabytes()
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', data => count(data.length))
    socket.on('end', () => socket.end())
  })
  listen(server)
}

/** One answer without an end. */
function serveHttp2(): void {
  const count = gigabytes()
  const chunk = Buffer.alloc(64 * 1024, 1)
  const server = http2.createServer()
  server.on('stream', stream => {
    stream.respond()
    stream.on('error', () => {})
    stream.on('drain', write)
    write()
    function write(): void {
      do count(chunk.length)
      while (stream.write(chunk))
    }
  })
  listen(server)
}

function askHttp2(): void {
  http2.connect(`http://127.0.0.1:${port}`).request().resume()
}

function listen(server: net.Server | http2.Http2Server): void {
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as net.AddressInfo).port }))
}

/** Counts bytes, and reports how often the whole heap was marked for each gigabyte of them. */
function gigabytes(): (length: number) => void {
  let marked = 0
  let left = GIGABYTE
  new PerformanceObserver(list => {
    for (const { detail } of list.getEntries()) {
      if ((detail as { kind: number }).kind === constants.NODE_PERFORMANCE_GC_MAJOR) marked++
    }
  }).observe({ entryTypes: ['gc'] })
  return length => {
    left -= length
    if (left > 0) return
    left += GIGABYTE
    process.send?.({ marked })
    marked = 0
  }
}

function send(): void {
  const chunk = Buffer.alloc(64 * 1024, 1)
  const socket = net.connect(Number(port), '127.0.0.1', write)
  socket.on('drain', write)
  function write(): void {
    while (socket.write(chunk));
  }
}

/** Connections by the hundred, until some of them came to their end without a full collection. */
function dial(): void {
  let majors = 0
  new PerformanceObserver(list => {
    for (const { detail } of list.getEntries()) {
      if ((detail as { kind: number }).kind === constants.NODE_PERFORMANCE_GC_MAJOR) majors++
    }
  }).observe({ entryTypes: ['gc'] })
  const warmUp = (): void => void connectMany(CONNECTIONS, measure)
  const measure = (): void => {
    const majorsBefore = majors
    const bytesBefore = oldSpaceBytes()
    connectMany(CONNECTIONS, () => {
      const bytes = (oldSpaceBytes() - bytesBefore) / CONNECTIONS
      // What the observer has yet to tell.
      setTimeout(() => {
        if (majors > majorsBefore) measure()
        else process.send?.({ bytes })
      }, 50)
    })
  }
  warmUp()
}

function connectMany(count: number, onDone: () => void): void {
  let left = count
  let open = 0
  const next = (): void => {
    if (left-- <= 0) {
      if (open === 0) onDone()
      return
    }
    open++
    const socket = net.connect(Number(port), '127.0.0.1', () => socket.end())
    socket.resume().on('close', () => {
      open--
      next()
    })
  }
  for (let i = 0; i < AT_ONCE; i++) next()
}

function oldSpaceBytes(): number {
  const spaces = v8.getHeapSpaceStatistics()
  return spaces.find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? Number.NaN
}
