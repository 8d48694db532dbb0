/** pg with postgres: in the clear, and over TLS that begins in the middle of the connection. */
import pg from 'pg'
import { trust } from '../certificate.ts'
import { bytesOf, digest, failureOf, heard, type Journal, largeBytes } from '../journal.ts'
import { deadPort, type Place, play } from '../scenario.ts'

const EVENTS = ['connect', 'notice', 'notification', 'error', 'end']

async function call({ port }: Place, journal: Journal): Promise<void> {
  const settings = { host: '127.0.0.1', port, user: 'interop', database: 'postgres' }
  const secure = { ...settings, ssl: trust() }
  for (const [name, config] of [
    ['clear', settings],
    ['secure', secure],
  ] as const) {
    await dialogue(name, new pg.Client(config), new pg.Client(config), journal)
    await pool(name, new pg.Pool({ ...config, max: 4 }), journal)
  }
  journal.note('untrusted', await failureOf(new pg.Client({ ...settings, ssl: true }).connect()))
  const refused = new pg.Client({ ...settings, port: await deadPort() })
  journal.note('refused', (await failureOf(refused.connect())).replace(/\d+/g, ''))
}

async function dialogue(name: string, client: pg.Client, other: pg.Client, journal: Journal): Promise<void> {
  for (const [who, it] of [
    [name, client],
    [`${name} other`, other],
  ] as const) {
    journal.watch(who, it, EVENTS, (event, message: { payload?: string; message?: string }) =>
      event === 'notification' ? message.payload : (message?.message ?? ''),
    )
    await it.connect()
  }
  const { rows } = await client.query('select ssl, version from pg_stat_ssl where pid = pg_backend_pid()')
  journal.note(name, JSON.stringify(rows))
  await client.query('create temp table blobs (id int, bytes bytea)')
  await client.query('insert into blobs values ($1, $2)', [1, largeBytes()])
  const large = await client.query('select bytes from blobs')
  journal.note(name, digest(large.rows[0].bytes))
  const many = await client.query('select i, md5(i::text) from generate_series(1, 20000) i')
  journal.note(name, many.rowCount, digest(JSON.stringify(many.rows)))
  journal.note(name, await failureOf(client.query('select 1/0')))
  await client.query("do $$ begin raise notice 'hello'; end $$")
  await client.query('begin')
  journal.note(name, await failureOf(client.query('select * from nowhere')))
  journal.note(name, await failureOf(client.query('select 1')))
  await client.query('rollback')

  await client.query('listen news')
  const notified = heard(client, 'notification')
  await other.query("notify news, 'item'")
  await notified

  const killed = failureOf(other.query('select pg_sleep(60)'))
  const gone = heard(other, 'end')
  const kill = "select pg_terminate_backend(pid) from pg_stat_activity where query like 'select pg_sleep%'"
  while ((await client.query(kill)).rowCount === 0) await new Promise(resolve => setTimeout(resolve, 10))
  journal.note(name, await killed)
  await gone
  await client.end()
}

async function pool(name: string, clients: pg.Pool, journal: Journal): Promise<void> {
  const queries = Array.from({ length: 40 }, async (_, i) => {
    const bytes = bytesOf(i * 1000, `${name} ${i}`)
    const { rows } = await clients.query('select $1::bytea as bytes, pg_sleep(0.001)', [bytes])
    journal.note(`${name} query ${i}`, digest(rows[0].bytes))
  })
  await Promise.all(queries)
  await clients.end()
}

play({ call })
