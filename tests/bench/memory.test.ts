/** `npm run bench:memory`: how it is used. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { plainEnvironment } from '../support/child.ts'

const MEMORY = fileURLToPath(new URL('../../bench/memory.js', import.meta.url))

function memory(...args: string[]) {
  return spawnSync(process.execPath, [MEMORY, ...args], { env: plainEnvironment(), encoding: 'utf8' })
}

t.test('what is no number of connections or peers is an error of usage', async t => {
  for (const [args, complaint] of [
    [['--connections', 'x'], /--connections must be a whole number from 1 to/],
    [['--connections', '-5'], /--connections/],
    [['--peers', '0'], /--peers must be a whole number from 1 to/],
    [['--pairs', '1'], /Unknown option/],
  ] as const) {
    t.match(memory(...args), { status: 2, stdout: '', stderr: complaint }, args.join(' '))
  }
})

t.test('both ways, connections and peers, are in the table', async t => {
  const { status, stdout, stderr } = memory('--connections', '20', '--peers', '1')
  t.equal(status, 0, stderr)
  for (const mode of ['plain', 'relinked'])
    for (const what of [
      'an idle connection, server',
      'an idle connection, client',
      'a peer with one connection',
    ])
      t.match(stdout, `${mode}: ${what}`)
})
