/** Scenarios (scenarios.ts) of what runs between two things that a program hears. */
import { bothClosed, connect, log, sortByName } from './dialogue.ts'

async function onreadAndTicks() {
  const buffer = Buffer.alloc(4)
  const callback = (count: number): boolean => {
    log.push(`callback ${count}`)
    process.nextTick(() => log.push('tick'))
    queueMicrotask(() => log.push(`microtask ${buffer.toString('latin1', 0, count)}`))
    return true
  }
  const pair = await connect({}, { onread: { buffer, callback } })
  pair.peer.resume().end('0123456789ab')
  await bothClosed(pair)
  pair.server.close()
  log.splice(0, log.length, ...log.filter(line => !line.startsWith('server')))
}

async function writtenBeforeTheAnswer() {
  const pair = await connect()
  const { client, peer, server } = pair
  let left = 1 << 20
  let isWritten = false
  peer.on('data', data => {
    left -= data.length
    if (left === 0) peer.end('answer')
  })
  client.on('data', data => log.push(`client ${data} ${isWritten}`))
  await new Promise(resolve => client.write(Buffer.alloc(left), resolve))
  isWritten = true
  client.end()
  await bothClosed(pair)
  sortByName()
  server.close()
}

export const TICKS = [onreadAndTicks, writtenBeforeTheAnswer]
