/**
 * Where something that the fast way needs is missing or may not be used, a relinked program starts, listens and connects as a
 * plain one does, and it is on record why it is on TCP.
 */
import { type ForkOptions, spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { Child, plainEnvironment } from '../support/child.ts'
import { NOBODY, noOtherUser } from '../support/other-user.ts'
import { program, REGISTER, relinked } from '../support/relinked.ts'

interface Told {
  readonly events: readonly string[]
  readonly wire?: string
  readonly code?: string
}

interface Situation {
  /** For the program itself. */
  readonly changes?: string
  /** Options of Node, before those that relink. */
  readonly flags?: readonly string[]
  /** What starts Node: a program and its arguments. */
  readonly wrapper?: readonly string[]
  readonly environment?: NodeJS.ProcessEnv
  readonly uid?: number
}

const FINE = ['listening', 'data hello']
const STARTS = program('starts')
const root = fileURLToPath(new URL('../../..', import.meta.url))

async function run(t: Test, situation: Situation, isRelinked: boolean): Promise<Told> {
  const { changes = '', flags = [], wrapper: [wrapper, ...before] = [], environment = {}, uid } = situation
  const execArgv = wrapper === undefined ? [...flags] : [...before, process.execPath, ...flags]
  const options: ForkOptions = {
    execArgv,
    env: { ...plainEnvironment(), ...environment },
    ...(wrapper === undefined ? {} : { execPath: wrapper }),
    ...(uid === undefined ? {} : { uid, gid: uid }),
  }
  return await new Child(t, STARTS, [changes], isRelinked ? relinked(options) : options).receive<Told>()
}

/** The program sees what a plain one sees; `code` is the reason on record, undefined if it is fast all the same. */
async function starts(t: Test, situation: Situation, code: string | undefined): Promise<void> {
  const told = await run(t, situation, true)
  t.strictSame(told.events, FINE)
  t.equal(told.code, code)
  if (code === undefined) t.equal(told.wire, 'loopback')
}

/** How this Node is told to ask for permission; the rights that it has no word for, a program has. */
function permission(...rights: readonly string[]): string[] {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const flag = major > 22 || (major === 22 && minor >= 13) ? '--permission' : '--experimental-permission'
  const net = process.allowedNodeEnvironmentFlags.has('--allow-net') ? ['--allow-net'] : []
  return [flag, ...net, ...rights]
}

t.test('the permission model', async t => {
  const own = `--allow-fs-read=${join(root, '*')}`
  await t.test('with the rights to its own folder', t =>
    starts(t, { flags: permission(own) }, 'POLICY_INVALID'),
  )
  await t.test('and to addons', t =>
    starts(t, { flags: permission(own, '--allow-addons') }, 'POLICY_INVALID'),
  )
  await t.test('with the right to read', t => starts(t, { flags: permission('--allow-fs-read=*') }, 'KOFFI'))
  await t.test('to read, and to addons: it is fast', t =>
    starts(t, { flags: permission('--allow-fs-read=*', '--allow-addons') }, undefined),
  )
})

const hide = (path: string): string[] => [
  'unshare',
  '--mount',
  'sh',
  '-c',
  `mount -t tmpfs none ${path} && exec "$@"`,
  'sh',
]
const noNamespace =
  spawnSync('unshare', ['--mount', 'true']).status !== 0 && 'no mount namespace can be made here'

const READ_ONLY = ['unshare', '--mount', 'sh', '-c', 'mount -o remount,bind,ro / && exec "$@"', 'sh']

t.test('a root that is read-only', { skip: noNamespace }, t =>
  starts(t, { wrapper: READ_ONLY, environment: { TMPDIR: '/nowhere' } }, undefined),
)
t.test('without /proc', { skip: noNamespace }, t => starts(t, { wrapper: hide('/proc') }, 'NOT_STARTED'))
t.test('without /dev/shm', { skip: noNamespace }, t => starts(t, { wrapper: hide('/dev/shm') }, undefined))

/** In a table of 64, so that it is full soon. */
const FEW = ['prlimit', '--nofile=64']

t.test('few free descriptors: the program gets those that it would have plain', async t => {
  for (const free of [2, 3, 4, 6])
    await t.test(`${free}, for a listener and both ends`, async t => {
      const plain = await run(t, { wrapper: FEW, changes: `free=${free}` }, false)
      const told = await run(t, { wrapper: FEW, changes: `free=${free}` }, true)
      t.equal(plain.events[0], 'listening')
      // Connections within a process need no descriptors.
      t.strictSame(told.events, FINE)
    })
  for (const free of [2, 3, 6])
    await t.test(`${free}, for a client`, async t => {
      const server = new Child(t, STARTS, ['serve'], relinked())
      const { port } = await server.receive<{ port: number }>()
      const situation = { wrapper: FEW, changes: `free=${free},port=${port}` }
      t.strictSame((await run(t, situation, false)).events, ['data hello'])
      t.match(await run(t, situation, true), { events: ['data hello'], wire: 'tcp', code: 'LIMIT' })
    })
  await t.test('2, while newer Node reads many certificates in a thread', async t => {
    const server = new Child(t, STARTS, ['serve'], relinked())
    const { port } = await server.receive<{ port: number }>()
    const certificates = rootCertificates.map(it => `${it}\n`).join('')
    const script = `const { closeSync, openSync } = require('fs')
      const opened = []
      try { for (;;) opened.push(openSync('/dev/null')) } catch {}
      for (const fd of opened.slice(-2)) closeSync(fd)
      const socket = require('net').connect(${port}, '127.0.0.1')
      socket.on('error', error => console.log(error.code)).on('data', data => console.log(String(data)))`
    // So many that the thread takes some 100 ms.
    const dir = t.testdir({ 'many.pem': certificates.repeat(20), 'few.cjs': script })
    const environment = { ...plainEnvironment(), NODE_EXTRA_CA_CERTS: join(dir, 'many.pem') }
    for (const flags of [[], ['--import', REGISTER.href], ['--import', REGISTER.href]]) {
      const line = [...FEW.slice(1), process.execPath, ...flags, join(dir, 'few.cjs')]
      const { stdout } = spawnSync('prlimit', line, { env: environment, encoding: 'utf8' })
      t.equal(stdout, 'hello\n', flags.join(' '))
    }
  })
  await t.test('none from the moment that a client is connected', t => {
    const script = `const { openSync } = require('fs'), net = require('net')
      const server = net.createServer().listen(0, '127.0.0.1', () => {
        net.connect(server.address().port, '127.0.0.1', () => {
          setTimeout(() => { console.log('fine'); process.exit() }, 400)
          try { for (;;) openSync('/dev/null') } catch {}
        })
      })`
    const path = join(t.testdir({ 'none.cjs': script }), 'none.cjs')
    const line = [...FEW.slice(1), process.execPath, '--import', REGISTER.href, path]
    // By default connections start on TCP; any variable of ours loads more at once.
    const mine = ([name]: [string, unknown]): boolean => !name.startsWith('FASTSOCKETS_')
    const env = Object.fromEntries(Object.entries(plainEnvironment()).filter(mine))
    const { stdout, stderr } = spawnSync('prlimit', line, { env, encoding: 'utf8' })
    t.equal(stdout, 'fine\n', stderr)
    t.end()
  })
  for (const free of [2, 3, 6])
    await t.test(`${free}, for a server of plain clients`, async t => {
      const server = new Child(
        t,
        STARTS,
        [`free=${free},serve`],
        relinked({ execPath: 'prlimit', execArgv: [...FEW.slice(1), process.execPath] }),
      )
      const { port } = await server.receive<{ port: number }>()
      t.strictSame((await run(t, { changes: `port=${port}` }, false)).events, ['data hello'])
    })
})

/** What a program may see of a table that is full. Threads of Node 26 need a descriptor at moments of their own: so which of it is chance. */
const SEEN = /^(listening$|data hello$|client connect EMFILE|server listen EMFILE)/

t.test('few free descriptors in the first phase: the program sees what a plain one may see', async t => {
  const environment = { FASTSOCKETS_START: 'tcp' }
  const compare = async (t: Test, changes: string): Promise<void> => {
    for (const isRelinked of [false, true]) {
      const { events } = await run(t, { wrapper: FEW, changes, environment }, isRelinked)
      t.not(events.length, 0)
      for (const event of events) t.match(event, SEEN)
    }
  }
  for (const free of [0, 1, 4])
    await t.test(`${free}, for a listener and both ends`, t => compare(t, `free=${free}`))
  for (const free of [0, 1, 2, 3])
    await t.test(`${free}, for a client`, async t => {
      const server = new Child(t, STARTS, ['serve'], {})
      const { port } = await server.receive<{ port: number }>()
      await compare(t, `free=${free},port=${port}`)
    })
})

t.test('little address space', t => starts(t, { wrapper: ['prlimit', '--as=1500000000'] }, undefined))

t.test('files that may not be written', t => starts(t, { wrapper: ['prlimit', '--fsize=0'] }, 'DRIVER'))

t.test('memory that a seccomp filter refuses', async t => {
  const denied = { flags: ['--import', program('deny-memory').href] }
  await t.test('in one process', t => starts(t, denied, 'DRIVER'))
  for (const [name, atServer, atClient, code] of [
    ['the server', denied, {}, 'NOT_RELINKED'],
    ['the client', {}, denied, 'DRIVER'],
  ] as const)
    await t.test(`${name} alone`, async t => {
      const server = new Child(t, STARTS, ['serve'], relinked({ execArgv: atServer.flags ?? [] }))
      const { port } = await server.receive<{ port: number }>()
      const told = await run(t, { ...atClient, changes: `port=${port}` }, true)
      t.match(told, { events: ['data hello'], wire: 'tcp', code })
    })
})

t.test('a home that is none', async t => {
  const skip = noOtherUser(STARTS)
  await t.test("another user's", { skip }, t =>
    starts(t, { uid: NOBODY, environment: { HOME: '/root' } }, undefined),
  )
  await t.test('none', t => starts(t, { environment: { HOME: undefined } }, undefined))
  const loop = join(t.testdir({}), 'loop')
  symlinkSync('loop', loop)
  const everywhere = { HOME: loop, XDG_CONFIG_HOME: loop, XDG_CACHE_HOME: loop, XDG_RUNTIME_DIR: loop }
  await t.test('a link to itself', t => starts(t, { environment: everywhere }, undefined))
  await t.test('a policy that is a folder', t =>
    starts(t, { environment: { FASTSOCKETS_POLICY: '/tmp' } }, 'POLICY_INVALID'),
  )
})

/** What a program may remove that others do without: without each of these nothing can be fast. */
const NEEDED = ['WeakRef', 'SharedArrayBuffer', 'Atomics']
/** These are not needed, all at once. */
const OTHERS = [
  'FinalizationRegistry',
  'performance',
  'structuredClone',
  'queueMicrotask',
  'setTimeout',
  'setImmediate',
  'AbortController',
  'WebAssembly',
  'URL',
]

t.test('globals that are removed', async t => {
  const before = async (t: Test, names: readonly string[], code: string | undefined): Promise<void> => {
    const source = names.map(name => `delete globalThis.${name}\n`).join('')
    const first = join(t.testdir({ 'first.cjs': source }), 'first.cjs')
    await starts(t, { flags: ['--require', first] }, code)
  }
  for (const name of NEEDED) await t.test(`${name}, before`, t => before(t, [name], 'NOT_STARTED'))
  await t.test('what is not needed, before', t => before(t, OTHERS, undefined))
  const changes = [...NEEDED, ...OTHERS].map(name => `without=${name}`).join(',')
  await t.test('all of them, after', t => starts(t, { changes }, undefined))
})

t.test('prototypes of the language that are frozen', async t => {
  const source =
    'for (const { prototype } of [Object, Array, Map, Promise, Uint8Array]) Object.freeze(prototype)'
  const first = join(t.testdir({ 'first.cjs': source }), 'first.cjs')
  await t.test('before', t => starts(t, { flags: ['--require', first] }, undefined))
  await t.test('after', t => starts(t, { changes: 'frozen' }, undefined))
})

t.test('options of Node', async t => {
  for (const flag of [
    '--frozen-intrinsics',
    '--disable-proto=delete',
    '--disable-proto=throw',
    '--disallow-code-generation-from-strings',
    '--jitless',
  ])
    await t.test(flag, t => starts(t, { flags: [flag] }, undefined))
  await t.test('--no-addons', t => starts(t, { flags: ['--no-addons'] }, 'KOFFI'))
})

t.test('a preload by --require fails no program either', async t => {
  const cjs = fileURLToPath(new URL('register.cjs', REGISTER))
  const first = join(t.testdir({ 'first.cjs': 'delete globalThis.SharedArrayBuffer' }), 'first.cjs')
  for (const flags of [
    ['--require', cjs],
    ['--require', first, '--require', cjs],
  ]) {
    const told = await run(t, { flags }, false)
    t.strictSame(told.events, FINE)
  }
})
