/** The command line tool for a first-time user: every help text, wrong arguments, exit codes. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { plainEnvironment } from '../../support/child.ts'

const CLI = fileURLToPath(new URL('../../../fastsockets/cli/main.js', import.meta.url))

/** Every command, and those below it. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  run: [],
  doctor: [],
  status: [],
  ui: [],
  policy: ['check'],
  explain: [],
  perf: ['server', 'ping-pong', 'throughput', 'connect'],
  bench: [],
  demo: [],
  named: [],
  nic: ['open'],
  names: ['ls', 'get', 'watch', 'register', 'rm', 'leases'],
}

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

function fastsockets(...args: readonly string[]): Promise<Ended> {
  return new Promise(resolve => {
    // No daemon of the name service is there.
    const env = { ...plainEnvironment(), FASTSOCKETS_NAMES: 'unix:/nonexistent/named.sock' }
    execFile(process.execPath, [CLI, ...args], { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr })
    })
  })
}

t.test('every command has a help of its own, with examples', async t => {
  const { stdout: overview } = await fastsockets('--help')
  const listed = [...overview.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name)
  t.strictSame(
    listed.filter(name => name !== 'help'),
    Object.keys(COMMANDS),
    'none is missing here',
  )
  for (const command of Object.keys(COMMANDS)) {
    const help = await fastsockets(command, '--help')
    t.match(help, { code: 0, stderr: '' }, command)
    t.match(help.stdout, new RegExp(`^Usage: fastsockets ${command}\\b`))
    t.match(help.stdout, /\nExamples:\n( {2}\$ .+\n)+/, `${command} has examples`)
    t.match(help.stdout, /\b[Ee]xit codes?\b/, `${command} says its exit codes`)
    t.strictSame(await fastsockets('help', command), help, `help ${command} says the same`)
  }
})

t.test('so has every command below another', async t => {
  for (const [command, names] of Object.entries(COMMANDS)) {
    for (const name of names) {
      const help = await fastsockets(command, name, '--help')
      t.match(help, { code: 0, stderr: '' }, `${command} ${name}`)
      t.match(help.stdout, new RegExp(`^Usage: fastsockets ${command} ${name}\\b`))
    }
  }
})

t.test('the help of bench is that of the measuring room: options, suites, contestants', async t => {
  for (const args of [
    ['bench', '--help'],
    ['bench', '-h'],
    ['bench', '--quick', '--help'],
    ['bench', 'pingpong', '--help'],
    ['help', 'bench'],
  ]) {
    const { code, stdout } = await fastsockets(...args)
    t.equal(code, 0)
    t.match(stdout, /--contestants <names>.*\nSuites:\n {2}pingpong .*\nContestants:\n/s, args.join(' '))
  }
})

t.test('what is not how a command is used has exit code 2, and a line that says why', async t => {
  for (const [args, why] of [
    [['nonsense'], /unknown command 'nonsense'/],
    [['bench', 'nonsense'], /there is no suite nonsense/],
    [['bench', '--nonsense'], /unknown option '--nonsense'/],
    [['run'], /missing required argument/],
    [['status', 'more'], /too many arguments/],
    [['status', '--pid', 'abc'], /it must be the number of a process/],
    [['status', '--watch', 'abc'], /it must be a number of seconds/],
    [['explain', 'nonsense'], /it must look like localhost:8080, \[::1\]:8080 or unix:/],
    [['doctor', 'nonsense'], /it must look like localhost:8080 or \[::1\]:8080/],
    [['perf', 'ping-pong', 'localhost:65536'], /it must look like localhost:8080/],
    [['demo', '--size', '0'], /whole number of MB/],
    [['names', 'register', 'a/b', '--endpoint', 'e', '--ttl', 'abc'], /Not a number/],
  ] as const) {
    const { code, stdout, stderr } = await fastsockets(...args)
    t.equal(code, 2, args.join(' '))
    t.match(stderr, why)
    t.equal(stdout, '', 'nothing that a pipe could take for a result')
  }
})

t.test('a caller that has closed our standard error gets the exit code all the same', async t => {
  for (const args of [['nonsense'], ['status', '--pid', 'abc']]) {
    const child = spawn(process.execPath, [CLI, ...args], { env: plainEnvironment() })
    child.stderr.destroy()
    t.strictSame(await once(child, 'exit'), [2, null], args.join(' '))
  }
})

t.test('without a daemon the name service says what to do', async t => {
  const asked = await fastsockets('names', 'ls', '--json')
  t.match(asked, { code: 1, stdout: '' })
  t.match(asked.stderr, /not available: ENOENT\n\(fastsockets named starts the daemon; --address or /)
  const checked = await fastsockets('named', '--socket-path', '/nonexistent/named.sock', '--health-check')
  t.match(checked, { code: 1, stdout: '' })
  t.match(checked.stderr, /no daemon answers there: ENOENT/)
})
