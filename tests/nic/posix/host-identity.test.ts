import { execFileSync, spawnSync } from 'node:child_process'
import t from 'tap'
import { HOST_IDENTITY_SIZE } from '../../../nic/host-identity-layout.ts'
import { hostIdentity } from '../../../nic/posix/host-identity.ts'

const module = new URL('../../../nic/posix/host-identity.js', import.meta.url)
const print = `import(${JSON.stringify(module.href)}).then(m => console.log(m.hostIdentity().toString('hex')))`
const skip = process.platform !== 'linux' && 'reads /proc'

t.test('two processes of one host and network namespace have the same identity', { skip }, async t => {
  const other = execFileSync(process.execPath, ['-e', print], { encoding: 'utf8' }).trim()
  t.equal(hostIdentity().length, HOST_IDENTITY_SIZE)
  t.equal(hostIdentity().toString('hex'), other)
})

const unshared = skip || spawnSync('unshare', ['--net', 'true']).status === 0 ? skip : 'may not unshare'
if (unshared) t.comment(`SKIPPED: another network namespace: ${unshared}`)

t.test('a process in another network namespace has another identity', { skip: unshared }, async t => {
  const args = ['--net', process.execPath, '-e', print]
  const other = execFileSync('unshare', args, { encoding: 'utf8' }).trim()
  t.equal(other.length, 2 * HOST_IDENTITY_SIZE)
  t.not(hostIdentity().toString('hex'), other)
})
