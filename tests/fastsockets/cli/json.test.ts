/** docs/reference/cli.md says what is in the JSON of the command line: this keeps it true. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

const CLI = fileURLToPath(new URL('../../../fastsockets/cli/main.js', import.meta.url))
const PAGE = readFileSync(new URL('../../../../docs/reference/cli.md', import.meta.url), 'utf8')
const ROW = /^\| (`[^|]+`) \| (number|string|boolean|object|array)(, may lack)? \|/gm

interface Field {
  readonly name: string
  readonly type: string
  readonly mayLack: boolean
}

/** The tables below a heading, in their order. */
function tablesOf(command: string): Field[][] {
  const [section = ''] = PAGE.slice(PAGE.indexOf(`## \`fastsockets ${command}`) + 1).split('\n## ')
  const tables = section.match(/^\| field .*\n(\|.*\n)+/gm) ?? []
  return tables.map(table =>
    [...table.matchAll(ROW)].flatMap(([, names = '', type = '', lacks]) =>
      [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => ({
        name,
        type,
        mayLack: lacks !== undefined,
      })),
    ),
  )
}

/** What is wrong with `value`, by its table. */
function faultsOf(value: object, fields: readonly Field[]): string[] {
  const known = new Map(fields.map(field => [field.name, field]))
  const strange = Object.entries(value).filter(([name, content]) => known.get(name)?.type !== typeOf(content))
  const missing = fields.filter(({ name, mayLack }) => !mayLack && !(name in value))
  return [
    ...strange.map(([name]) => `${name} is not as documented`),
    ...missing.map(({ name }) => `no ${name}`),
  ]
}

function typeOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : typeof value
}

/** Both exit codes are fine: it is the form that counts. */
function jsonOf<T>(...args: readonly string[]): Promise<T> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [CLI, ...args, '--json'], { env: plainEnvironment() }, (error, stdout) => {
      if (stdout === '') reject(error)
      else resolve(JSON.parse(stdout) as T)
    })
  })
}

interface Thread {
  readonly pid: number
  readonly listeners: readonly object[]
  readonly sockets: readonly { readonly kind: string }[]
}

t.test('status: threads, listeners, sockets that are fast and such that are not', async t => {
  const [ofThread = [], ofListener = [], ofSocket = [], ofFastSocket = []] = tablesOf('status')
  const server = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await server.receive<{ port: number }>()
  for (const options of [relinked(), {}]) {
    await new Child(t, program('client'), [String(port)], options).receive()
    await server.receive()
  }
  const threads = (await jsonOf<Thread[]>('status')).filter(({ pid }) => pid === server.pid)
  t.equal(threads.length, 1)
  for (const thread of threads) {
    t.strictSame(faultsOf(thread, ofThread), [])
    t.equal(thread.listeners.length, 1)
    for (const listener of thread.listeners) t.strictSame(faultsOf(listener, ofListener), [])
    t.strictSame(thread.sockets.map(({ kind }) => kind).sort(), ['net', 'tcp'])
    for (const socket of thread.sockets) {
      const fields = socket.kind === 'tcp' ? ofSocket : [...ofSocket, ...ofFastSocket]
      t.strictSame(faultsOf(socket, fields), [], socket.kind)
    }
  }
})

t.test('doctor: the verdict and the findings', async t => {
  const [ofReport = [], ofCheck = []] = tablesOf('doctor')
  const server = new Child(t, program('server'), ['echo'])
  const { port } = await server.receive<{ port: number }>()
  const report = await jsonOf<{ checks: object[] }>('doctor', `127.0.0.1:${port}`)
  t.strictSame(faultsOf(report, ofReport), [])
  t.ok(report.checks.length > 0)
  for (const check of report.checks) t.strictSame(faultsOf(check, ofCheck), [])
})

t.test('explain: an explanation for each address, fast or not', async t => {
  const [ofExplanation = []] = tablesOf('explain')
  for (const options of [relinked(), {}]) {
    const server = new Child(t, program('server'), ['echo'], options)
    const { port } = await server.receive<{ port: number }>()
    const explanations = await jsonOf<object[]>('explain', `127.0.0.1:${port}`)
    t.equal(explanations.length, 1)
    for (const explanation of explanations) t.strictSame(faultsOf(explanation, ofExplanation), [])
  }
})
