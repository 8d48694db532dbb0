/** A listener whose rendezvous folder comes late, goes, and comes back: how soon it is published. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { NO_ID, VERSION } from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import type { BootstrapHost } from '../../../fastsockets/bootstrap/bootstrap-server.ts'
import { FolderServer } from '../../../fastsockets/bootstrap/folder-server.ts'
import { realKernel } from '../../../fastsockets/bootstrap/kernel.ts'
import { UNIX } from '../../../fastsockets/host/unix-paths.ts'

/** After so many looks that count as failures, the next ones would be left out. */
const LOOKS = 6

t.test('the first look at a folder that is there, however long it was not', async t => {
  const folder = join(mkdtempSync(join(tmpdir(), 'rendezvous-')), 'late')
  t.teardown(() => rmSync(join(folder, '..'), { recursive: true }))
  process.env.FASTSOCKETS_RENDEZVOUS = folder
  let look = (): void => {}
  const host: BootstrapHost = {
    kernel: {
      ...realKernel,
      refreshRegularly: refresh => {
        look = refresh
        return () => {}
      },
    },
    introduce: port => ({
      ...{ version: VERSION, port, isShared: false, isRequired: false, uid: 0, pid: 0 },
      ...{ endpointId: NO_ID, hostIdentity: NO_ID, door: NO_ID, listenerId: NO_ID },
    }),
    openDoor: () => undefined,
    answer: () => {
      throw new Error('this test connects no client to the listener')
    },
  }
  const place = { address: 'file-1-1', port: 0, family: UNIX, ipv6Only: false, id: NO_ID } as const
  const server = FolderServer.open({ ...place, isRequired: false, isShared: false }, host)
  t.teardown(() => server?.close())
  for (const when of ['at first', 'after it was deleted']) {
    for (let i = 0; i < LOOKS; i++) look()
    mkdirSync(folder, { mode: 0o700 })
    look()
    t.strictSame(readdirSync(folder), ['unix-1-1'], when)
    rmSync(folder, { recursive: true })
  }
})
