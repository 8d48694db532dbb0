/** When a worker of a cluster says 'listening'. */
import { EventEmitter } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { delayListening, emitDelayed } from '../../../fastsockets/connect/delayed-listening.ts'
import type { FastServer } from '../../../fastsockets/connect/listeners.ts'

function serverThatHears(): { server: FastServer; heard: string[] } {
  const server = Object.assign(new EventEmitter(), { _handle: {} }) as unknown as FastServer
  const heard: string[] = []
  server.on('listening', () => heard.push('listening'))
  server.on('close', () => heard.push('close'))
  return { server, heard }
}

t.test('the event waits until it is let go, and comes once; others do not wait', async t => {
  const { server, heard } = serverThatHears()
  const release = delayListening(server)
  server.emit('listening')
  server.emit('close')
  t.same(heard, ['close'])
  release()
  release()
  await nextTurn()
  t.same(heard, ['close', 'listening'])
  t.notOk(Object.hasOwn(server, 'emit'), 'the server is as it was')
  server.emit('listening')
  t.equal(heard.length, 3)
})

t.test('let go before it is due it does not wait', async t => {
  const { server, heard } = serverThatHears()
  delayListening(server)()
  await nextTurn()
  t.same(heard, [])
  server.emit('listening')
  t.same(heard, ['listening'])
})

t.test('a server that is closed meanwhile has said it', async t => {
  const { server, heard } = serverThatHears()
  const release = delayListening(server)
  server.emit('listening')
  emitDelayed(server)
  t.same(heard, ['listening'])
  release()
  await nextTurn()
  t.same(heard, ['listening'])
})

t.test('a connection that comes meanwhile comes after it', async t => {
  const { server, heard } = serverThatHears()
  server.on('connection', () => heard.push('connection'))
  const release = delayListening(server)
  server.emit('listening')
  server.emit('connection')
  release()
  await nextTurn()
  t.same(heard, ['listening', 'connection'])
})

t.test('a server that has lost its handle says nothing', async t => {
  const { server, heard } = serverThatHears()
  const release = delayListening(server)
  server.emit('listening')
  Object.assign(server, { _handle: null })
  release()
  await nextTurn()
  t.same(heard, [])
})
