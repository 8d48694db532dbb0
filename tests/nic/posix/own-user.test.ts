/** Which ids are our own user: the kernel's effective ids, and never the id that stands for all unmapped ones. */
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { isOverflowUser, isOwnUser } from '../../../nic/index.ts'
import { mapsEveryUser } from '../../../nic/posix/own-user.ts'
import { skipHere } from '../../support/skip.ts'

const OVERFLOW = 65534

/** What a process says that runs as `uid` of a user namespace in which nothing else is mapped. */
function inNamespace(uid: number): { own: boolean; nobody: boolean } | undefined {
  const url = new URL('../../../nic/posix/own-user.js', import.meta.url)
  const script = `const { isOverflowUser, isOwnUser } = await import(${JSON.stringify(url.href)})
    console.log(JSON.stringify({ own: isOwnUser(process.geteuid()), nobody: isOverflowUser(${OVERFLOW}) }))`
  const node = [process.execPath, '--input-type=module', '-e', script]
  const { status, stdout } = spawnSync('unshare', ['--user', `--map-user=${uid}`, ...node], {
    encoding: 'utf8',
  })
  return status === 0 ? JSON.parse(stdout) : undefined
}

t.test('our own user is the effective one', async t => {
  const own = process.geteuid?.() as number
  t.equal(isOwnUser(own), !isOverflowUser(own))
  t.equal(isOwnUser(own + 1), false)
})

t.test('a set-user-id process is its effective user', async t => {
  if (process.getuid?.() !== 0) return skipHere(t, 'needs root to become another user')
  process.seteuid?.(1234)
  try {
    t.equal(isOwnUser(1234), true)
    t.equal(isOwnUser(0), false)
  } finally {
    process.seteuid?.(0)
  }
})

t.test('every user is mapped, or not', async t => {
  t.equal(mapsEveryUser('         0          0 4294967295\n'), true)
  t.equal(mapsEveryUser('0 0 65536\n65536 65536 4294901759\n'), true)
  t.equal(mapsEveryUser('     65534     105534          1\n'), false)
  t.equal(mapsEveryUser('0 1000 1\n1 100000 65536\n'), false)
  t.equal(mapsEveryUser(''), false)
})

t.test('in a user namespace the overflow uid identifies no user, not even our own', async t => {
  const other = inNamespace(1000)
  if (other === undefined) return skipHere(t, 'this machine makes no user namespace by unshare(1)')
  t.strictSame(other, { own: true, nobody: true })
  t.strictSame(inNamespace(OVERFLOW), { own: false, nobody: true })
})
