/**
 * The answering side of the active-message measurements. Prints the name of its endpoint.
 *
 *   argv: manual | event-loop  DRIVER
 */
import { openEndpoint } from '../../am/index.ts'
import { ECHO, ECHOED, SEGMENT_SIZE, SINK, STOP } from './am-protocol.ts'

const progress = process.argv[2] === 'manual' ? 'manual' : 'event-loop'
const driver = process.argv[3] ?? 'shm'
// Only drivers between hosts are asked for at an address.
const listen = driver === 'shm' ? {} : { listen: '0.0.0.0:0' }
const endpoint = await openEndpoint({ progress, drivers: [driver], segment: SEGMENT_SIZE, ...listen })
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
