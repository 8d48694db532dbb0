/**
 * What the garbage collector has to do. argv: server | sender port | dialer port.
 * The server says after each gigabyte how often the whole heap was marked for it; the dialer opens and closes connections,
 * and says how many bytes each has added to what only a full collection frees.
 */
import net from 'node:net'
import { constants, PerformanceObserver } from 'node:perf_hooks'
import v8 from 'node:v8'

const GIGABYTE = 1e9
const CONNECTIONS = 4000
const AT_ONCE = 8

const [role, port = '0'] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

if (role === 'server') serve()
else if (role === 'sender') send()
else dial()

function serve(): void {
  let marked = 0
  let left = GIGABYTE
  new PerformanceObserver(list => {
    for (const { detail } of list.getEntries()) {
      if ((detail as { kind: number }).kind === constants.NODE_PERFORMANCE_GC_MAJOR) marked++
    }
  }).observe({ entryTypes: ['gc'] })
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', data => {
      left -= data.length
      if (left > 0) return
      left += GIGABYTE
      process.send?.({ marked })
      marked = 0
    })
    socket.on('end', () => socket.end())
  })
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as net.AddressInfo).port }))
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
