/**
 * The answering side of the active-message measurements. Prints the name of its endpoint.
 *
 *   argv: manual | event-loop
 */
import { openEndpoint } from '../../am/index.ts'
import { ECHO, ECHOED, SEGMENT_SIZE, SINK, STOP } from './am-protocol.ts'

const progress = process.argv[2] === 'manual' ? 'manual' : 'event-loop'
const endpoint = await openEndpoint({ progress, drivers: ['shm'], segment: SEGMENT_SIZE })
let isOver = false
endpoint.setHandler(ECHO, message => message.reply(ECHOED, message.word(0)))
endpoint.setHandler(SINK, () => {})
endpoint.setHandler(STOP, message => {
  isOver = true
  message.reply(ECHOED)
})
process.stdout.write(`${JSON.stringify({ name: endpoint.name })}\n`)
while (!isOver) {
  await endpoint.wait()
  if (progress === 'manual') while (!isOver) endpoint.poll()
}
await endpoint.close()
