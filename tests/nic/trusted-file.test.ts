/** Files that a program obeys: their owner, their writers, their type and size. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { findPolicyFile } from '../../fastsockets/policy/find-policy.ts'
import { PolicyError } from '../../fastsockets/policy/policy-error.ts'
import { readPolicyFile } from '../../fastsockets/policy/policy-file.ts'
import { thresholdPath, writeThreshold } from '../../fastsockets/stream/zcopy/threshold-file.ts'
import { readTrustedFile, UntrustedFileError } from '../../nic/trusted-file.ts'
import { plainEnvironment } from '../support/child.ts'
import { NOBODY } from '../support/other-user.ts'
import { REGISTER } from '../support/relinked.ts'
import { skipHere } from '../support/skip.ts'

const MAIN = fileURLToPath(new URL('../../fastsockets/cli/main.js', import.meta.url))
const MODULE = new URL('../../nic/trusted-file.js', import.meta.url).href
const notRoot = process.getuid?.() === 0 ? false : 'it takes root to own files of others'
const SIZE_MAX = 100
/** Neither root, nor ours, nor the user nobody. */
const OTHER_USER = 4242

/** Not below the repository: another user may own it. */
function folderOf(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'trusted-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function read(path: string, isSecret = false): string {
  return readTrustedFile(path, { sizeMax: SIZE_MAX, isSecret }).toString()
}

function refuses(t: Test, path: string, problem: RegExp, isSecret = false): void {
  t.throws(
    () => read(path, isSecret),
    { code: 'ERR_UNTRUSTED_FILE', message: problem } as never,
    `${problem}`,
  )
}

t.test('a regular file of our own is read, whole, by any name', async t => {
  const folder = folderOf(t)
  const path = join(folder, 'file')
  writeFileSync(path, 'x'.repeat(SIZE_MAX), { mode: 0o644 })
  t.equal(read(path).length, SIZE_MAX)
  mkdirSync(join(folder, 'folder'))
  t.equal(read(`${folder}//folder/.././file`).length, SIZE_MAX)
  const here = process.cwd()
  t.teardown(() => process.chdir(here))
  process.chdir(join(folder, 'folder'))
  t.equal(read('../file').length, SIZE_MAX)
  t.throws(() => read(join(folder, 'nowhere')), { code: 'ENOENT' })
})

t.test('what is no regular file is refused without a wait', async t => {
  const folder = folderOf(t)
  const pipe = join(folder, 'pipe')
  spawnSync('mkfifo', [pipe])
  refuses(t, pipe, /pipe is no regular file$/)
  refuses(t, folder, /is no regular file$/)
  refuses(t, '/dev/zero', /zero is no regular file$/)
  symlinkSync('/dev/zero', join(folder, 'link'))
  refuses(t, join(folder, 'link'), /zero is no regular file$/)
})

t.test('a file that is too large is refused', async t => {
  const path = join(folderOf(t), 'file')
  writeFileSync(path, 'x'.repeat(SIZE_MAX + 1), { mode: 0o600 })
  refuses(t, path, /file has more than 100 bytes$/)
})

t.test(
  'a file that others may write to is refused, and one that others may read if it is secret',
  async t => {
    const path = join(folderOf(t), 'file')
    writeFileSync(path, 'x')
    for (const mode of [0o620, 0o602, 0o666]) {
      chmodSync(path, mode)
      refuses(t, path, /file may be written to by its group or by others: chmod go-w on it$/)
    }
    for (const mode of [0o644, 0o604, 0o601]) {
      chmodSync(path, mode)
      t.equal(read(path), 'x')
      refuses(t, path, /file is secret, and others may read it: chmod o= on it$/, true)
    }
    for (const mode of [0o600, 0o640, 0o400]) {
      chmodSync(path, mode)
      t.equal(read(path, true), 'x')
    }
  },
)

t.test('a folder in which others could exchange the file is refused', async t => {
  const folder = join(folderOf(t), 'folder')
  mkdirSync(folder)
  writeFileSync(join(folder, 'file'), 'x', { mode: 0o600 })
  for (const mode of [0o777, 0o775, 0o757]) {
    chmodSync(folder, mode)
    refuses(
      t,
      join(folder, 'file'),
      /folder is a folder in which others could exchange the file: chmod go-w on it$/,
    )
  }
  chmodSync(folder, 0o1777)
  t.equal(read(join(folder, 'file')), 'x', 'as in /tmp')
})

t.test('files, folders and links of another user are refused', { skip: notRoot }, async t => {
  const folder = folderOf(t)
  const path = join(folder, 'file')
  writeFileSync(path, 'x', { mode: 0o600 })
  chownSync(path, NOBODY, NOBODY)
  refuses(t, path, /file belongs to user 65534: it must belong to this user or root \(chown\)$/)
  const below = join(folder, 'folder')
  mkdirSync(below)
  writeFileSync(join(below, 'file'), 'x', { mode: 0o600 })
  chownSync(below, NOBODY, NOBODY)
  refuses(t, join(below, 'file'), /folder is a folder of user 65534, who could exchange the file$/)

  // As any user may make it in /tmp, to have a privileged program read another of its own files.
  chmodSync(folder, 0o1777)
  const link = join(folder, 'link')
  spawnSync('ln', ['-s', '/etc/hostname', link], { uid: NOBODY, gid: NOBODY })
  t.ok(existsSync(link))
  refuses(t, link, /link is a link of user 65534: name the file itself$/)
})

t.test('in a user namespace a file of an unmapped user is not ours', { skip: notRoot }, async t => {
  const folder = folderOf(t)
  chmodSync(folder, 0o755)
  const file = join(folder, 'policy')
  writeFileSync(file, 'content')
  chownSync(file, OTHER_USER, OTHER_USER)
  const script = `const { readTrustedFile } = await import(${JSON.stringify(MODULE)})
    try { console.log(String(readTrustedFile(${JSON.stringify(file)}, { sizeMax: 100 }))) }
    catch (error) { console.log(process.geteuid(), error.code) }`
  const node = [process.execPath, '--input-type=module', '-e', script]
  const { status, stdout } = spawnSync('unshare', ['--user', `--map-user=${NOBODY}`, ...node], {
    encoding: 'utf8',
    env: plainEnvironment(),
  })
  if (status !== 0) return skipHere(t, 'this machine makes no user namespace by unshare(1)')
  t.equal(stdout, `${NOBODY} ERR_UNTRUSTED_FILE\n`)
})

t.test("root's files are trusted by every user, as are their own", { skip: notRoot }, async t => {
  const folder = folderOf(t)
  chmodSync(folder, 0o755)
  writeFileSync(join(folder, 'of-root'), 'root', { mode: 0o644 })
  writeFileSync(join(folder, 'own'), 'own', { mode: 0o600 })
  chownSync(join(folder, 'own'), NOBODY, NOBODY)
  for (const name of ['of-root', 'own']) {
    const script = `
      import { readTrustedFile } from ${JSON.stringify(MODULE)}
      process.stdout.write(readTrustedFile(${JSON.stringify(join(folder, name))}, { sizeMax: 9 }))`
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
      encoding: 'utf8',
      env: plainEnvironment(),
      uid: NOBODY,
      gid: NOBODY,
    })
    t.match(name, stdout, stderr)
    t.notSame(stdout, '')
  }
})

t.test('as Kubernetes mounts secrets: links in a sticky folder, over a folder that is exchanged', async t => {
  const folder = folderOf(t)
  chmodSync(folder, 0o1777)
  mkdirSync(join(folder, '..2026_11_26'))
  writeFileSync(join(folder, '..2026_11_26', 'key'), 'x', { mode: 0o440 })
  symlinkSync('..2026_11_26', join(folder, '..data'))
  symlinkSync('..data/key', join(folder, 'key'))
  t.equal(read(join(folder, 'key'), true), 'x')
})

t.test('links that go in a circle come to an end', async t => {
  const folder = folderOf(t)
  symlinkSync('b', join(folder, 'a'))
  symlinkSync('a', join(folder, 'b'))
  refuses(t, join(folder, 'a'), /leads over more than 40 links$/)
})

t.test('a policy file', async t => {
  const folder = folderOf(t)
  const path = join(folder, 'fastsockets', 'policy.yaml')
  mkdirSync(join(folder, 'fastsockets'))
  writeFileSync(path, 'default: tcp\n', { mode: 0o644 })
  t.equal(findPolicyFile({ XDG_CONFIG_HOME: folder }), path)
  t.equal(readPolicyFile(path).default.use, 'tcp')
  const refused = (problem: RegExp): void => {
    t.throws(
      () => readPolicyFile(path),
      { constructor: PolicyError, message: problem } as never,
      `${problem}`,
    )
  }
  chmodSync(path, 0o666)
  refused(/may be written to by its group or by others: chmod go-w on it$/)
  // The program runs all the same, over TCP, and says what is to be done.
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [
      '--import',
      REGISTER.href,
      '--input-type=module',
      '--eval',
      "import net from 'node:net'; const s = net.connect(1, '127.0.0.1'); s.on('error', e => console.log(e.code))",
    ],
    { encoding: 'utf8', env: { ...plainEnvironment(), FASTSOCKETS_POLICY: path } },
  )
  t.equal(stdout, 'ECONNREFUSED\n')
  t.match(stderr, /everything stays on TCP: .*chmod go-w on it/)
  writeFileSync(path, '#'.repeat(1024 * 1024 + 1))
  chmodSync(path, 0o644)
  refused(/has more than 1048576 bytes$/)
  rmSync(path)
  spawnSync('mkfifo', [path])
  refused(/is no regular file$/)
})

t.test('secrets of the daemon and of its client', async t => {
  const folder = folderOf(t)
  const loose = join(folder, 'loose')
  writeFileSync(loose, 'x', { mode: 0o644 })
  const pipe = join(folder, 'pipe')
  spawnSync('mkfifo', [pipe])
  const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
    spawnSync(process.execPath, [MAIN, ...args], {
      encoding: 'utf8',
      env: { ...plainEnvironment(), ...env },
      timeout: 60_000,
    })
  const daemon = ['named', '--store-kind', 'memory', '--socket-path', join(folder, 's')]
  const tcp = [...daemon, '--tcp-listen', '127.0.0.1:0']
  const etcd = [...daemon, '--store-kind', 'etcd', '--etcd-endpoints', 'http://127.0.0.1:1']
  const secret = /is secret, and others may read it: chmod o= on it/
  const noFile = /is no regular file/
  for (const [problem, args, env] of [
    [secret, [...tcp, '--tcp-certificate', loose, '--tcp-key', loose], {}],
    [secret, [...tcp, '--tcp-tokens', loose], {}],
    [secret, [...etcd, '--etcd-certificate', loose, '--etcd-key', loose], {}],
    [secret, [...etcd, '--etcd-user', 'u', '--etcd-password-file', loose], {}],
    [secret, ['names', '--address', 'http://127.0.0.1:1', '--token-file', loose, 'ls'], {}],
    [secret, ['names', '--address', 'http://127.0.0.1:1', 'ls'], { FASTSOCKETS_NAMES_TOKEN_FILE: loose }],
    [noFile, [...tcp, '--tcp-certificate', pipe, '--tcp-key', pipe], {}],
    [noFile, [...tcp, '--tcp-tokens', pipe], {}],
    [noFile, [...etcd, '--etcd-ca', pipe], {}],
    [noFile, [...daemon, '--config', pipe], {}],
    [noFile, ['names', '--address', 'http://127.0.0.1:1', 'ls'], { FASTSOCKETS_NAMES_CA_FILE: pipe }],
  ] as const) {
    const { stdout, stderr, signal } = run(args, env)
    t.equal(signal, null, 'the program ends by itself')
    t.match(stdout + stderr, problem, args.join(' '))
  }
})

t.test('a folder in place of zcopy.json leaves nothing behind', async t => {
  const { XDG_CACHE_HOME } = process.env
  t.teardown(() => {
    process.env.XDG_CACHE_HOME = XDG_CACHE_HOME ?? ''
  })
  process.env.XDG_CACHE_HOME = folderOf(t)
  const path = thresholdPath() as string
  mkdirSync(path, { recursive: true })
  for (let i = 0; i < 3; i++) writeThreshold('one', 100_000)
  t.strictSame(readdirSync(join(path, '..')), ['zcopy.json'])
  t.strictSame(readdirSync(path), [])
})

t.test('the error says which file, without what a terminal would obey', async t => {
  const path = join(folderOf(t), 'a\x1b\u202e')
  writeFileSync(path, 'x')
  chmodSync(path, 0o666)
  t.throws(() => read(path), UntrustedFileError)
  refuses(t, path, /a\\u001b\\u202e may be written/)
})
