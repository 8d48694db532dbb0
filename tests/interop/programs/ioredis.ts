/** ioredis with redis-server: pipelines, transactions, large values, subscriptions, connections that are killed. */
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { bytesOf, digest, failureOf, type Journal, largeBytes } from '../journal.ts'
import { deadPort, type Place, play } from '../scenario.ts'

const EVENTS = ['connect', 'ready', 'error', 'close', 'reconnecting', 'end']

async function call({ port }: Place, journal: Journal): Promise<void> {
  const connect = (name: string): Redis => {
    const redis = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 5 })
    journal.watch(name, redis, EVENTS)
    return redis
  }
  const redis = connect('main')
  await redis.flushall()
  journal.note('main', await redis.set('large', largeBytes()))
  journal.note('main', digest((await redis.getBuffer('large')) as Buffer))
  const pipeline = redis.pipeline()
  for (let i = 0; i < 2000; i++) pipeline.set(`key ${i}`, `value ${i}`).get(`key ${i}`)
  journal.note('pipeline', digest(JSON.stringify(await pipeline.exec())))
  journal.note('multi', JSON.stringify(await redis.multi().incr('n').incr('n').lpush('n', 'x').exec()))
  journal.note('failure', await failureOf(redis.call('NO SUCH COMMAND')))
  const many = Array.from({ length: 300 }, (_, i) => redis.set(`blob ${i}`, bytesOf(i * 100, `${i}`)))
  journal.note(
    'many',
    (await Promise.all(many)).every(answer => answer === 'OK'),
  )
  const keys = Array.from({ length: 300 }, (_, i) => `blob ${i}`)
  journal.note('many', digest(Buffer.concat((await redis.mgetBuffer(keys)) as Buffer[])))

  const subscriber = connect('subscriber')
  journal.watch('subscriber', subscriber, ['message', 'pmessageBuffer'], (_, ...args: unknown[]) =>
    args.join(' '),
  )
  await subscriber.subscribe('news')
  for (let i = 0; i < 5; i++) await redis.publish('news', `item ${i}`)
  const blocked = connect('blocked')
  const popped = blocked.blpop('queue', 0)
  await redis.lpush('queue', 'job')
  journal.note('blocked', await popped)

  // The server hangs up; the client comes back by itself, and subscribes again.
  const back = once(subscriber, 'ready')
  await redis.call('CLIENT', 'KILL', 'ID', await idOfSubscriber(redis))
  await back
  while ((await redis.publish('news', 'after')) === 0) await new Promise(resolve => setTimeout(resolve, 5))
  for (const client of [subscriber, blocked, redis]) {
    const ended = once(client, 'end')
    await client.quit()
    await ended
  }

  const refused = new Redis({ port: await deadPort(), host: '127.0.0.1', retryStrategy: null as never })
  journal.watch('refused', refused, ['connect', 'close', 'end'])
  const [error] = await once(refused, 'error')
  journal.note('refused', error.code, error.syscall, error.address)
}

async function idOfSubscriber(redis: Redis): Promise<string> {
  const list = (await redis.client('LIST')) as string
  const line = list.split('\n').find(client => client.includes('sub=1')) as string
  return /id=(\d+)/.exec(line)?.[1] as string
}

play({ call })
