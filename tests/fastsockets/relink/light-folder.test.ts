import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startPhase } from '../../../fastsockets/host/start-phase.ts'
import { mayBeFast } from '../../../fastsockets/relink/light-folder.ts'
import { listenerName } from '../../../nic/rendezvous/names-layout.ts'
import { until } from '../../support/until.ts'

/** RFC 5737: of no host. */
const ELSEWHERE = '192.0.2.1'
const PORT = 7000

function target(address: string, port = PORT): Parameters<typeof mayBeFast>[0] {
  return { address, port, isPath: false, isBound: false }
}

t.beforeEach(t => {
  const folder = mkdtempSync(join(tmpdir(), 'light-folder-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  Object.assign(startPhase, { folder, hasFolder: true })
  t.context.publish = (port: number) => writeFileSync(join(folder, listenerName(ELSEWHERE, port)), '')
})

t.test('a name that appears is found by who looked before in vain', async t => {
  t.equal(mayBeFast(target(ELSEWHERE)), false)
  t.equal(mayBeFast(target(ELSEWHERE)), false, 'at once again')
  t.context.publish(PORT)
  t.ok(await until('the name', () => mayBeFast(target(ELSEWHERE))))
})

t.test('a miss says nothing of other ports', async t => {
  t.context.publish(PORT + 1)
  t.equal(mayBeFast(target(ELSEWHERE)), false)
  t.equal(mayBeFast(target(ELSEWHERE, PORT + 1)), true)
  t.equal(mayBeFast(target(ELSEWHERE)), false)
})

t.test('which destinations need no look', async t => {
  t.equal(mayBeFast(target('localhost')), false)
  t.equal(mayBeFast(target('127.0.0.1')), false)
  t.equal(mayBeFast(target('some.name')), true, 'a name may be any container')
  t.equal(mayBeFast({ ...target('/some/path', 0), isPath: true }), true)
})
