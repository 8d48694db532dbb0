/** Where the files of apps lie. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { whyNoRoom, withFolder } from '../../bench/apps/app-folder.ts'

t.test('what does not fit is refused with a reason', async t => {
  t.ok(whyNoRoom(1) === undefined || /16\.\d MB/.test(whyNoRoom(1) as string))
  t.match(whyNoRoom(2 ** 60), /^\/dev\/shm has .* to spare, and it needs 1152921505 GB$/)
})

t.test('a folder is there until its use has ended, well or not', async t => {
  for (const place of ['memory', 'disk'] as const) {
    let kept = ''
    const use = async (folder: string): Promise<number> => {
      kept = folder
      writeFileSync(join(folder, 'file'), 'x')
      return 7
    }
    t.equal(await withFolder(place, use), 7)
    t.notOk(existsSync(kept))
    const fails = async (folder: string): Promise<never> => {
      await use(folder)
      throw new Error('it failed')
    }
    await t.rejects(withFolder(place, fails), { message: 'it failed' })
    t.notOk(existsSync(kept))
  }
})
