/** The step that fails, as `explain` and `doctor HOST:PORT` name it: the client's side, the server's, and seccomp. */
import { chmodSync, chownSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Check } from '../../../fastsockets/cli/doctor/check.ts'
import { childIn, leaveName, makeContainers, namesIn, noContainers } from '../../support/containers.ts'
import { program } from '../../support/relinked.ts'
import type { Wanted } from '../programs/explainer.ts'
import type { Called, Question } from '../programs/neighbour.ts'

const skip = noContainers()
if (skip) t.comment(`SKIPPED: explain and doctor in containers: ${skip}`)
const neighbour = program('neighbour')
const explainer = program('explainer')
const PORT = 8080
const STRANGER = 4242

interface Found {
  readonly explained: { readonly outcome: string; readonly reason?: { code: string; text: string } }
  readonly checks: readonly Check[]
}

function failed(code: string, text: RegExp): object {
  return {
    explained: { outcome: 'tcp', reason: { code, text } },
    checks: [{ state: 'failed', detail: text, hint: String }],
  }
}

t.test('each step of a client', { skip }, async t => {
  const containers = makeContainers(t, 0o1777)
  const { near, far, folder } = containers
  const server = childIn(t, containers, far, neighbour)
  await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
  const asker = childIn(t, containers, near, explainer, [], { isPlain: true })
  const ask = (more: Partial<Wanted> = {}): Promise<Found> =>
    asker.ask({ host: far.address, port: PORT, folder, ...more } satisfies Wanted)
  t.match(await ask(), { explained: { outcome: 'shm' }, checks: [{ state: 'ok', detail: /^fast/ }] })

  t.match(await ask({ folder: '/nowhere' }), failed('NO_RENDEZVOUS', /folder \/nowhere does not exist/))
  t.match(await ask({ folder: '/etc/passwd' }), failed('NO_RENDEZVOUS', /\/etc\/passwd is no folder/))
  t.match(await ask({ folder: 'off' }), failed('NO_RENDEZVOUS', /names no absolute path/))
  const port = PORT + 1
  const place = join(folder, `tcp4-${far.address}-${port}`)
  t.match(await ask({ port }), failed('NO_RENDEZVOUS', /there is no .*tcp4-.*-8081/), 'no such name')
  writeFileSync(place, '')
  t.match(await ask({ port }), failed('NO_RENDEZVOUS', /tcp4-.*-8081 is no socket/))
  rmSync(place)
  await leaveName(place)
  t.match(await ask({ port }), failed('NO_RENDEZVOUS', /no process listens at .*tcp4-.*-8081/), 'refused')
  chownSync(place, STRANGER, STRANGER)
  t.match(await ask({ port }), failed('OTHER_USER', /tcp4-.*-8081 belongs to user 4242/))

  const name = join(folder, `tcp4-${far.address}-${PORT}`)
  chownSync(name, STRANGER, STRANGER)
  t.match(
    await ask({ uid: STRANGER }),
    failed('OTHER_USER', /its socket is of user 0/),
    'its file belongs to this user, and its process to another one',
  )
  chmodSync(name, 0)
  t.match(await ask(), failed('NO_RENDEZVOUS', /tcp4-.*-8080 cannot be connected to: EACCES/))
  chmodSync(folder, 0o700)
  t.match(await ask(), failed('NO_RENDEZVOUS', /cannot be searched: EACCES/), 'a folder of another user')
  t.match(
    await ask({ isMemoryDenied: true }),
    failed('DRIVER', /memfd_create EPERM, and a seccomp filter judges its system calls/),
  )
})

t.test('each step of a server', { skip }, async t => {
  const containers = makeContainers(t, 0o1777)
  const { near, far, folder } = containers
  const open = childIn(t, containers, far, neighbour)
  const before = `mount --bind -o ro ${folder} ${folder}`
  const readOnly = childIn(t, containers, far, neighbour, [], { before })
  const denied = childIn(t, containers, far, neighbour, [], { preloads: [program('deny-memory')] })
  for (const [i, server] of [open, readOnly, denied].entries())
    await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT + i } satisfies Question)
  const here = childIn(t, containers, far, explainer, [], { isPlain: true, before })
  const ask = (port: number, isMemoryDenied = false): Promise<Found> =>
    here.ask({ host: far.address, port, isMemoryDenied } satisfies Wanted)
  t.match(await ask(PORT), { checks: [{ state: 'ok' }, { state: 'ok', detail: /^published/ }] })
  t.match(await ask(PORT + 1), {
    explained: { outcome: 'shm' },
    checks: [{ state: 'ok' }, { state: 'note', detail: /^not published: .*cannot be written to: EROFS/ }],
  })
  t.match(
    await ask(PORT + 2),
    failed('NOT_RELINKED', /is not relinked, has just started, or has loaded nothing yet/),
  )
  t.match(await ask(PORT + 2, true), failed('DRIVER', /memfd_create EPERM, and a seccomp filter/))
  const there = childIn(t, containers, near, explainer, [], { isPlain: true })
  for (const [port, expected] of [
    [PORT, { explained: { outcome: 'shm' } }],
    [PORT + 1, failed('NO_RENDEZVOUS', /there is no/)],
    [PORT + 2, failed('NO_RENDEZVOUS', /there is no/)],
  ] as const)
    t.match(await there.ask({ host: far.address, port } satisfies Wanted), expected, `port ${port}`)
})

t.test(
  "under Docker's default seccomp profile",
  { skip: skip || (process.arch !== 'x64' && 'its rules stand here for x86-64 only') },
  async t => {
    const containers = makeContainers(t, 0o700, 1000)
    const { near, far } = containers
    const options = { uid: 1000, launcher: program('docker-profile') }
    const server = childIn(t, containers, far, neighbour, [], options)
    await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
    t.strictSame(namesIn(containers), [`tcp4-${far.address}-${PORT}`])
    const client = childIn(t, containers, near, neighbour, [], options)
    const question: Question = { ask: 'call', host: far.address, port: PORT }
    t.match(await client.ask<Called>(question), {
      transport: 'shm',
      echoed: 200_000,
      there: { transport: 'shm' },
    })
  },
)
