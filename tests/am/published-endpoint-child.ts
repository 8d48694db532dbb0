/** A process with an endpoint that has published a name, and echoes. */
import { openEndpoint } from '../../am/index.ts'
import { ANSWER, ECHO } from './endpoint-questions.ts'

const [name, tag] = process.argv.slice(2)
try {
  const endpoint = await openEndpoint({ name: name as string, tag: BigInt(tag ?? 0), segment: 64 })
  endpoint.setHandler(ECHO, message => message.reply(ANSWER, message.word(0)))
  process.on('message', () => endpoint.close().then(() => process.send?.('closed')))
  process.send?.({ name: endpoint.name })
} catch (error) {
  process.send?.({ code: (error as { code?: string }).code })
  process.disconnect()
}
