/**
 * Listeners throw, on either side of connections within this process. Tells, for each error that the handler of uncaught
 * exceptions hears, whose context it was in, and which of the tasks below has caused it.
 */
import { AsyncLocalStorage, AsyncResource, createHook, executionAsyncId } from 'node:async_hooks'
import net, { type AddressInfo, type Socket } from 'node:net'

const tasks = new Map<number, string | undefined>()
createHook({
  init: (id, _type, triggerId) => {
    tasks.set(id, tasks.get(triggerId))
  },
}).enable()
const storage = new AsyncLocalStorage<string>()
const heard: string[] = []

const TASKS: Record<string, (socket: Socket, side: 'client' | 'server', fail: () => never) => void> = {
  connection: (_, side, fail) => side === 'server' && fail(),
  connect: (socket, side, fail) => side === 'client' && socket.on('connect', fail),
  'client data': (socket, side, fail) => (side === 'client' ? socket.on('data', fail) : socket.write('x')),
  'server data': (socket, side, fail) => (side === 'server' ? socket.on('data', fail) : socket.write('x')),
}

process.on('uncaughtException', error => {
  heard.push(`${error.message}: task ${tasks.get(executionAsyncId())}, store ${storage.getStore()}`)
  if (heard.length === Object.keys(TASKS).length) process.send?.(heard.sort(), () => process.exit())
})

for (const [name, prepare] of Object.entries(TASKS)) {
  const fail = (): never => {
    throw new Error(name)
  }
  const task = new AsyncResource('TASK')
  tasks.set(task.asyncId(), name)
  task.runInAsyncScope(() =>
    storage.run(name, () => {
      const server = net.createServer(socket => prepare(socket, 'server', fail))
      server.listen(0, '127.0.0.1', () => {
        prepare(net.connect((server.address() as AddressInfo).port, '127.0.0.1'), 'client', fail)
      })
    }),
  )
}
