/**
 * A server and its clients in this process. The server says something to one of them, and is ready for what comes next in
 * an immediate, as one that goes on to TLS when it has said so. Tells whether it was ready in time.
 */
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const ROUNDS = 10
/** Long enough for all threads to sleep: the first to speak is then looked at first. */
const LULL_MS = 20

const server = net.createServer()
await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))

async function connect(): Promise<[client: Socket, accepted: Socket]> {
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [accepted] = (await once(server, 'connection')) as [Socket]
  return [client, accepted]
}

const [other, acceptedOther] = await connect()
acceptedOther.resume()
const [client, accepted] = await connect()
const orders = new Set<string>()
for (let round = 0; round < ROUNDS; round++) {
  const heard: string[] = []
  client.once('data', () => {
    heard.push('said')
    client.write('answer')
  })
  accepted.once('data', () => heard.push('answer'))
  await sleep(LULL_MS)
  other.write('whatever')
  accepted.write('something', () => setImmediate(() => heard.push('ready')))
  await once(accepted, 'data')
  orders.add(heard.join(', '))
}
process.send?.([...orders], () => process.exit())
