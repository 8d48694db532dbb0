/** A request for a test over RDMA that does not exist fails with a message. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { plainEnvironment } from '../support/child.ts'

const MAIN = fileURLToPath(new URL('./main.js', import.meta.url))

t.test('a word that chooses nothing is an error that lists the words', async t => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, 'sockets', 'sokcets'], {
    env: plainEnvironment(),
    encoding: 'utf8',
  })
  t.equal(status, 2)
  t.match(stderr, /no test sokcets; there are: .*conformance.*sockets.*pair/)
  t.equal(stdout, '', 'nothing was run, and nothing has passed')
})
