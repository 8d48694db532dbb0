/** `fastsockets doctor`: the machine, and one pair of programs. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { hasDevice } from '../../../nic/index.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

const CLI = fileURLToPath(new URL('../../../fastsockets/cli/main.js', import.meta.url))

interface Report {
  readonly isFast: boolean
  readonly checks: readonly { name: string; state: string; detail: string; hint?: string }[]
}

function doctor(...args: string[]): { status: number | null; report: Report } {
  const { status, stdout } = spawnSync(process.execPath, [CLI, 'doctor', '--json', ...args], {
    env: plainEnvironment(),
    encoding: 'utf8',
  })
  return { status, report: JSON.parse(stdout) as Report }
}

t.test('everything that bears on it is looked at', async t => {
  const { status, report } = doctor()
  t.equal(status, 0)
  t.equal(report.isFast, true)
  const names = report.checks.map(({ name }) => name)
  for (const name of [
    'driver shm',
    'driver loopback',
    'locked memory',
    'open files',
    'cores',
    'zcopy within this host',
    'policy',
    'live test',
  ]) {
    t.ok(names.includes(name), name)
  }
  // What it says where there is a device: tests/rdma.
  const verbs = report.checks.find(({ name }) => name === 'driver verbs')
  if (verbs?.state === 'ok') t.match(verbs.detail, /^between hosts: /)
  else
    t.match(verbs, {
      detail: /^cannot be used: (VERBS_[A-Z_]+|PLATFORM|KOFFI): .*(RDMA device|install|port|cannot be)/,
      hint: /docs\/guide\/rdma\.md/,
    })
})

t.test('a pair that is fast, and one that is not, with what to do about it', async t => {
  const fast = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await fast.receive<{ port: number }>()
  const good = doctor(`127.0.0.1:${port}`)
  t.match(good, { status: 0, report: { isFast: true } })
  t.match(good.report.checks.at(-1), { name: 'to 127.0.0.1', state: 'ok' })

  const plain = new Child(t, program('server'), ['echo'])
  const bad = doctor(`127.0.0.1:${(await plain.receive<{ port: number }>()).port}`)
  t.match(bad, { status: 1, report: { isFast: false } })
  t.match(bad.report.checks.at(-1), { state: 'failed', detail: /^NOT_RELINKED: /, hint: /register/ })
})

const perl = spawnSync('perl', ['-e', '1']).status === 0

t.test(
  'doctor names a server that is not a Node program, and does not advise to relink it',
  { skip: !perl && 'there is no perl' },
  async t => {
    const script =
      '$| = 1; my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => q(127.0.0.1)); print $s->sockport, qq(\\n); sleep 60'
    const server = spawn('perl', ['-MIO::Socket::INET', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    t.teardown(() => server.kill())
    const [line] = (await once(server.stdout, 'data')) as [Buffer]
    const { report } = doctor(`127.0.0.1:${Number(line)}`)
    const check = report.checks.at(-1)
    t.match(check?.detail, /^NOT_RELINKED: .*perl .*\(process \d+\) listens there, which is no Node program/)
    t.equal(check?.hint, undefined)
  },
)

t.test('another host without RDMA: what is missing, and what to do', async t => {
  // A documentation network: no such host exists.
  const { status, report } = doctor('192.0.2.1:80')
  t.equal(status, 1)
  const isThere = report.checks.some(({ name, state }) => name === 'driver verbs' && state === 'ok')
  const detail = isThere
    ? /no subnet of an RDMA device/
    : hasDevice()
      ? /^REMOTE_HOST: .*\((VERBS_[A-Z_]+|PLATFORM|KOFFI): .+\)$/
      : /^NO_RENDEZVOUS: .*the rendezvous folder .*\)$/
  const check = report.checks.at(-1)
  t.match(check, { name: 'to 192.0.2.1', state: 'failed', detail, hint: /docs\/guide\/rdma\.md/ })
  const code = /VERBS_[A-Z_]+/.exec(check?.detail ?? '')?.[0]
  const page = readFileSync(new URL('../../../../docs/guide/rdma.md', import.meta.url), 'utf8')
  if (code !== undefined) t.ok(page.includes(`\`${code}\``), `docs/guide/rdma.md explains ${code}`)
})
