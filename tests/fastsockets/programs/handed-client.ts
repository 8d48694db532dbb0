/** Talks to handing-moved.ts until the connection has moved, asks for it to be handed on, and talks to the child. argv: the port. */
import { once } from 'node:events'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/index.ts'

const socket = net.connect({ port: Number(process.argv[2]), host: '127.0.0.1', noDelay: true })
await once(socket, 'connect')

async function ask(text: string): Promise<string> {
  socket.write(text)
  let answer = ''
  while (answer.length < Math.min(3, text.length)) answer += String((await once(socket, 'data'))[0])
  return answer
}

let before = ''
for (let i = 0; i < 1000 && before !== 'shm'; i++) before = await ask('who')
socket.write('hand')
for (let i = 0; i < 1000 && transportOf(socket).transport !== 'tcp'; i++)
  await new Promise(resolve => setTimeout(resolve, 2))
let isRight = true
for (let i = 0; i < 50; i++) isRight &&= (await ask('abc')) === 'abc'
process.send?.({ before, after: transportOf(socket).transport, isRight })
process.on('disconnect', () => process.exit())
