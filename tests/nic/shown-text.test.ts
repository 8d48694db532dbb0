/** Names that would command a terminal, or look like others, are shown with escapes, wherever they come out. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { fallbackReason } from '../../fastsockets/reasons.ts'
import { decodeStatus } from '../../fastsockets/status/decode-status.ts'
import { StatusPage } from '../../fastsockets/status/status-page.ts'
import { openPage } from '../../nic/index.ts'
import { shownJson, shownText } from '../../nic/shown-text.ts'
import { plainEnvironment } from '../support/child.ts'

const MAIN = fileURLToPath(new URL('../../fastsockets/cli/main.js', import.meta.url))
/** ESC, a C1 control, both kinds of bidi overrides and isolates, marks, zero width, line ends, a tag, three fillers, half a surrogate. */
const EVIL =
  '\x1b[31m\x9b2J\u202e\u2066\u200f\u200e\u061c\u200b\ufeff\u2028\n\r\t\x00\u{e0041}\u3164\uffa0\u034f\ud800'
const UNFIT = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u3164\uffa0]|\u034f/u

t.test('each unfit character is escaped, and nothing else', async t => {
  t.equal(shownText('/srv/Müller ☃ 漢字'), '/srv/Müller ☃ 漢字')
  t.equal(shownText('a\u202eb\x1bc\nd\u2066\u200f\x85'), 'a\\u202eb\\u001bc\\u000ad\\u2066\\u200f\\u0085')
  t.equal(shownText('\u{e0041}'), '\\udb40\\udc41')
  t.notMatch(shownText(EVIL), UNFIT)
  const json = shownJson({ [EVIL]: EVIL }, 2)
  t.notMatch(json.replaceAll('\n', ''), UNFIT)
  t.strictSame(JSON.parse(json), { [EVIL]: EVIL }, 'JSON means the same')
})

t.test('reasons and status pages', async t => {
  t.notMatch(fallbackReason('POLICY', EVIL).text, UNFIT)
  const page = new StatusPage(openPage('shown-text', 1 << 20))
  page.open({
    kind: 'net',
    transport: 'shm',
    role: 'client',
    local: { address: '\u202e\x1b', port: 0 },
    remote: { address: '\u2066', port: 1 },
  })
  const [socket] = decodeStatus(page.image)?.sockets ?? []
  t.match(socket, { local: '\\u202e?', remote: '\\u2066:1' })
})

t.test('the command line', async t => {
  // No slash, and no zero: it is the name of a folder.
  const folder = join(t.testdir(), '\x1b[31m\u202e\u2066\u200f\x9b')
  mkdirSync(folder)
  const policy = join(folder, 'policy.yaml')
  writeFileSync(policy, 'default: tcp\n')
  const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}): string => {
    const { stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
      encoding: 'utf8',
      env: { ...plainEnvironment(), ...env },
    })
    return stdout + stderr
  }
  const named = { FASTSOCKETS_POLICY: policy }
  for (const [args, env] of [
    [['policy', 'check', policy], {}],
    [['policy', 'check', join(folder, 'none')], {}],
    [['policy', 'check'], named],
    [['explain', '127.0.0.1:1'], named],
    [['explain', '127.0.0.1:1', '--json'], named],
    [['explain', `unix:${join(folder, 'socket')}`], named],
    [['doctor'], named],
    [['doctor', '--json'], named],
    [['policy', 'check'], { FASTSOCKETS_USE: '\u202e\x1b[31m' }],
    [['names', '--address', `unix:${join(folder, 'socket')}`, 'ls'], {}],
  ] as const) {
    const text = run(args, env)
    t.match(text, /\S/, args.join(' '))
    t.notMatch(text.replaceAll('\n', ''), UNFIT, args.join(' '))
  }
})

t.test('debug logs', async t => {
  const script = `
    import { openLog } from ${JSON.stringify(new URL('../../nic/index.js', import.meta.url).href)}
    openLog('fastsockets:x')('of %s', ${JSON.stringify(EVIL)})`
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    encoding: 'utf8',
    env: { ...plainEnvironment(), DEBUG: 'fastsockets:*', DEBUG_COLORS: 'no' },
  })
  t.match(stderr, '\\u202e')
  t.notMatch(stderr.replaceAll('\n', ''), UNFIT)
})
