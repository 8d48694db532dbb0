/** mqtt with aedes: all qualities of service, retained messages, wills, large payloads, a broker that hangs up. */
import net, { type Socket } from 'node:net'
import { Aedes } from 'aedes'
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt'
import { HOST } from '../../support/placement.ts'
import { digest, heard, type Journal, largeBytes } from '../journal.ts'
import { closed, deadPort, type Place, placeOf, play, type Service } from '../scenario.ts'

async function serve(journal: Journal): Promise<Service> {
  const broker = await Aedes.createBroker()
  const sockets = new Map<string, Socket>()
  for (const event of ['client', 'clientReady', 'clientDisconnect'] as const) {
    broker.on(event, client => {
      journal.note(`broker ${client.id}`, event)
      if (event === 'clientReady') sockets.set(client.id, client.conn as Socket)
    })
  }
  broker.on('subscribe', (subscriptions, client) =>
    journal.note(`broker ${client.id}`, 'subscribe', JSON.stringify(subscriptions)),
  )
  broker.on('publish', (packet, client) => {
    if (client === null) return
    journal.note(`broker ${client.id}`, 'publish', packet.topic, packet.qos, digest(packet.payload))
    if (packet.topic === 'hang-up') sockets.get(String(packet.payload))?.destroy()
  })
  const server = net.createServer(broker.handle)
  return {
    place: { ...(await placeOf(server)), dead: await deadPort() },
    close: async () => {
      await new Promise<void>(resolve => broker.close(resolve))
      await closed(server)
    },
  }
}

async function call({ port, dead }: Place, journal: Journal): Promise<void> {
  async function open(clientId: string, more: IClientOptions = {}): Promise<MqttClient> {
    const client = await connectAsync({ host: HOST, port, clientId, reconnectPeriod: 5, ...more })
    journal.note(clientId, 'connected')
    journal.watch(
      clientId,
      client,
      ['connect', 'reconnect', 'message', 'disconnect', 'error', 'close', 'end'],
      (event, ...args: unknown[]) => (event === 'message' ? `${args[0]} ${digest(args[1] as Buffer)}` : ''),
    )
    return client
  }
  const messages = (client: MqttClient, count: number): Promise<void> =>
    new Promise(resolve => {
      let left = count
      client.on('message', () => --left === 0 && resolve())
    })

  const publisher = await open('publisher')
  const subscriber = await open('subscriber')
  await publisher.publishAsync('kept', 'retained', { retain: true, qos: 1 })
  const first = messages(subscriber, 1 + 3 * 50 + 1)
  await subscriber.subscribeAsync({ kept: { qos: 1 }, 'news/#': { qos: 2 } })
  for (const qos of [0, 1, 2] as const)
    for (let i = 0; i < 50; i++) await publisher.publishAsync(`news/${qos}`, `item ${i}`, { qos })
  await publisher.publishAsync('news/large', largeBytes(), { qos: 1 })
  await first

  const heir = await open('heir')
  await heir.subscribeAsync('will')
  const will = messages(heir, 1)
  const doomed = await open('doomed', {
    reconnectPeriod: 0,
    will: { topic: 'will', payload: Buffer.from('last words'), qos: 1, retain: false },
  })
  const gone = heard(doomed, 'close')
  await publisher.publishAsync('hang-up', 'doomed', { qos: 1 })
  await gone
  await will

  // Hung up upon, a client comes back by itself and has its subscriptions again.
  const back = heard(heir, 'connect')
  await publisher.publishAsync('hang-up', 'heir', { qos: 1 })
  await back
  for (const client of [publisher, subscriber, heir, doomed]) await client.endAsync()
  const refused = connectAsync(`mqtt://${HOST}:${dead}`, { reconnectPeriod: 0 }, false)
  journal.note(
    'refused',
    await refused.then(
      () => 'connected',
      error => `${error.code} ${error.syscall}`,
    ),
  )
}

play({ serve, call })
