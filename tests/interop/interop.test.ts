/**
 * Unmodified packages from npm, plain and relinked, see the same events in the same order and the same bytes. Each has a
 * program in programs/, which is server in one process and client in another; also a relinked client with a plain
 * server, and the other way round.
 */
import type { ForkOptions } from 'node:child_process'
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { areApart, clientSide } from '../support/placement.ts'
import { relinked } from '../support/relinked.ts'
import { startsFast } from '../support/start-mode.ts'
import type { Place, Seen } from './scenario.ts'
import { SERVERS, type ServerName } from './servers.ts'

/** Programs of programs/, and whose server they call if it is not their own. */
const PROGRAMS: Readonly<Record<string, ServerName | 'own'>> = {
  http: 'own',
  https: 'own',
  http2: 'own',
  express: 'own',
  fastify: 'own',
  undici: 'own',
  ws: 'own',
  'socket.io': 'own',
  mqtt: 'own',
  grpc: 'own',
  ftp: 'own',
  nginx: 'nginx',
  ioredis: 'redis-server',
  pg: 'postgres',
}

/** On a machine with much else to do a greeting may come too late, which means TCP: then the pair is tried again. */
const TRIES_MAX = 5

type Mode = 'plain' | 'relinked'
const MODES: readonly Mode[] = ['plain', 'relinked']

/** The wire of all connections of a client. */
function wireOf(client: Mode, server: Mode): string {
  if (client === 'plain') return 'tcp NOT_INSTALLED'
  const missing = areApart ? 'tcp NO_RENDEZVOUS' : 'tcp NOT_RELINKED'
  return server === 'plain' ? missing : 'shm'
}

function start(t: Test, name: string, mode: Mode, place = (options: ForkOptions) => options): Child {
  const options = mode === 'relinked' ? relinked() : {}
  return new Child(t, new URL(`programs/${name}.js`, import.meta.url), [], place(options))
}

async function end(t: Test, child: Child, who: string): Promise<void> {
  child.send({ do: 'exit' })
  t.same(await child.end(), { code: 0, signal: null }, `${who} ends by itself`)
}

for (const [name, server] of Object.entries(PROGRAMS)) {
  if (server === 'own') t.test(name, t => ownServer(t, name))
  else
    t.test(`${name} with ${server}`, { skip: SERVERS[server].absence() ?? false }, t =>
      foreignServer(t, name, server),
    )
}

async function ownServer(t: Test, name: string): Promise<void> {
  const servers = { plain: start(t, name, 'plain'), relinked: start(t, name, 'relinked') }
  const clients = {
    plain: start(t, name, 'plain', clientSide),
    relinked: start(t, name, 'relinked', clientSide),
  }
  let wanted: { client: Seen['lists']; server: Seen['lists'] } | undefined
  for (const server of MODES) {
    for (const client of MODES) {
      const { seen, served } = await dialogue(t, clients[client], servers[server])
      const pair = `${client} client, ${server} server`
      if (startsFast) t.strictSame(seen.wires, [wireOf(client, server)], `${pair}: the wire`)
      wanted ??= { client: seen.lists, server: served.lists }
      t.strictSame(seen.lists, wanted.client, `${pair}: what the client saw`)
      t.strictSame(served.lists, wanted.server, `${pair}: what the server saw`)
    }
  }
  for (const mode of MODES) {
    await end(t, clients[mode], `the ${mode} client`)
    await end(t, servers[mode], `the ${mode} server`)
  }
}

async function dialogue(t: Test, client: Child, server: Child): Promise<{ seen: Seen; served: Seen }> {
  for (let tries = 1; ; tries++) {
    const place = await server.ask<Place>({ do: 'serve' })
    const seen = await client.ask<Seen>({ do: 'call', place })
    const served = await server.ask<Seen>({ do: 'finish' })
    if (!seen.wires.includes('tcp SILENT') || tries === TRIES_MAX) return { seen, served }
    t.comment('a greeting came too late')
  }
}

async function foreignServer(t: Test, name: string, server: ServerName): Promise<void> {
  const place = await SERVERS[server].start(t)
  const seen: Record<string, Seen> = {}
  for (const mode of MODES) {
    const client = start(t, name, mode)
    seen[mode] = await client.ask<Seen>({ do: 'call', place })
    if (startsFast) t.strictSame(seen[mode].wires, [wireOf(mode, 'plain')], `${mode} client: the wire`)
    await end(t, client, `the ${mode} client`)
  }
  t.strictSame(seen.relinked?.lists, seen.plain?.lists, 'both saw the same')
}
