/** Debian's servers, for a test: each on a free port, in a folder of its own, as a user without rights. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { deathbound } from '../support/deathbound.ts'
import { freePort } from '../support/ports.ts'
import { eventually } from '../support/until.ts'
import { CERT_FILE, KEY_FILE } from './certificate.ts'
import { largeBytes } from './journal.ts'
import type { Place } from './scenario.ts'

export interface ForeignServer {
  /** Why it cannot be had here, or undefined. */
  absence(): string | undefined
  /** Runs until the test ends. */
  start(t: Test): Promise<Place>
}

/** Postgres refuses to run as root. */
const NOBODY = 65_534
const isRoot = process.getuid?.() === 0
const asNobody = isRoot ? { uid: NOBODY, gid: NOBODY } : {}

export const SERVERS = {
  'redis-server': {
    absence: () => absenceOf('redis-server', 'redis-server'),
    start: async t => {
      const port = await freePort()
      const options = { port, bind: '127.0.0.1', save: '', appendonly: 'no', dir: newFolder(t) }
      const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])
      return run(t, 'redis-server', args, port)
    },
  },
  nginx: {
    absence: () => absenceOf('nginx', 'nginx-light'),
    start: async t => {
      const port = await freePort()
      const folder = newFolder(t)
      writeFileSync(join(folder, 'large.bin'), largeBytes())
      writeFileSync(join(folder, 'nginx.conf'), nginxConfiguration(folder, port))
      return run(t, 'nginx', ['-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')], port)
    },
  },
  postgres: {
    absence: () =>
      postgresFolder() === undefined ? 'postgres is not installed (apt-get install postgresql)' : undefined,
    start: async t => {
      const port = await freePort()
      const folder = newFolder(t)
      const data = join(folder, 'data')
      const programs = postgresFolder() as string
      const made = spawnSync(
        join(programs, 'initdb'),
        [
          '-D',
          data,
          '-U',
          'interop',
          '-A',
          'trust',
          '--no-sync',
          '--no-instructions',
          '-E',
          'UTF8',
          '--locale=C',
        ],
        { ...asNobody, encoding: 'utf8' },
      )
      if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`)
      const options = {
        port,
        listen_addresses: '127.0.0.1',
        unix_socket_directories: '',
        fsync: 'off',
        ssl: 'on',
        ssl_cert_file: ownCopy(CERT_FILE, join(folder, 'cert.pem')),
        ssl_key_file: ownCopy(KEY_FILE, join(folder, 'key.pem')),
      }
      const args = Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`])
      return run(t, join(programs, 'postgres'), ['-D', data, ...args], port)
    },
  },
} as const satisfies Record<string, ForeignServer>

export type ServerName = keyof typeof SERVERS

function absenceOf(command: string, debianPackage: string): string | undefined {
  return spawnSync(command, ['-v']).error === undefined
    ? undefined
    : `${command} is not installed (apt-get install ${debianPackage})`
}

/** Debian keeps each version's programs in a folder outside PATH. */
function postgresFolder(): string | undefined {
  const root = '/usr/lib/postgresql'
  if (!existsSync(root)) return undefined
  const folders = readdirSync(root).map(version => join(root, version, 'bin'))
  return folders.find(folder => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')))
}

function newFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'interop-server-'))
  if (isRoot) chownSync(folder, NOBODY, NOBODY)
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function ownCopy(from: URL, to: string): string {
  copyFileSync(from, to)
  chmodSync(to, 0o600)
  if (isRoot) chownSync(to, NOBODY, NOBODY)
  return to
}

/** Starts the server and waits until its port answers. */
async function run(t: Test, command: string, args: readonly string[], port: number): Promise<Place> {
  const [program, ...words] = deathbound('INT', [command, ...args])
  const server = spawn(program, words, { ...asNobody, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const output of [server.stdout, server.stderr]) output.on('data', text => (said += text))
  t.teardown(() => stop(server))
  await eventually(`${command}: ${said}`, () => {
    if (server.exitCode !== null) throw new Error(`${command} ended: ${said}`)
    return answers(port)
  })
  return { port }
}

async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  // What postgres takes for "at once, and tidy up"; the others end, too.
  server.kill('SIGINT')
  await once(server, 'exit')
}

function answers(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

function nginxConfiguration(folder: string, port: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events {}
http {
  ${temporary.map(kind => `${kind}_temp_path ${folder}/${kind};`).join('\n  ')}
  access_log off;
  root ${folder};
  default_type application/octet-stream;
  client_max_body_size 20m;
  gzip on;
  gzip_proxied any;
  gzip_types application/octet-stream;
  server {
    listen 127.0.0.1:${port};
    location /ok { return 200 "fine"; }
    location /sink { proxy_pass http://127.0.0.1:${port}/ok; }
    location /cut { return 444; }
  }
}
`
}
