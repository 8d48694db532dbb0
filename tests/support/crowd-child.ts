/**
 * Calls an abstract unix socket again and again, stays, and says when asked how often it was hung up on. argv: the name without
 * its zero byte, how often, what it says.
 */
import { once } from 'node:events'
import net from 'node:net'

const [name, count, text = ''] = process.argv.slice(2)
let closed = 0
for (let i = 0; i < Number(count); i++) {
  const caller = net.connect(`\0${name}`)
  caller.on('error', () => {})
  caller.on('close', () => closed++)
  await once(caller, 'connect').catch(() => {})
  caller.resume()
  if (text !== '') caller.write(text)
}
process.on('message', () => process.send?.({ closed }))
process.send?.({ called: Number(count) })
