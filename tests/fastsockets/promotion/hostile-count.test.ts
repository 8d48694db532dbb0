/** A peer that breaks the rules of promotion: nothing hangs, and no byte is delivered in the place of another. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import type { Told } from '../programs/hostile-count.ts'

const env = { ...plainEnvironment(), FASTSOCKETS_START: 'tcp', FASTSOCKETS_ABLATE: 'price=0,count-wait=500' }
/** The liar closes the connection after so long; it has moved, and the lie is sent, by then. */
const PLAY_MS = 1500
/** The same for lies at which the honest side must reset the connection: it decides the end, also on a busy machine. */
const NOTICED_MS = 20_000

/** How the honest side's connection ends, before the liar closes it or by that. */
const LIES: Readonly<Record<string, RegExp>> = {
  'too large': /^ECONNRESET$/,
  'too small': /^ECONNRESET$/,
  negative: /^ECONNRESET$/,
  'all ones': /end|ECONNRESET/,
  'no count': /^ECONNRESET$/,
  'an end without a count': /^(end|ECONNRESET)$/,
  twice: /end|ECONNRESET/,
}

for (const liar of ['client', 'server'])
  t.test(`a lying ${liar}`, async t => {
    for (const [lie, ending] of Object.entries(LIES)) {
      const server = new Child(
        t,
        program('hostile-count'),
        ['server', '', liar === 'server' ? lie : ''],
        relinked({ env }),
      )
      const { port } = await server.receive<{ port: number }>()
      const args = ['client', String(port), liar === 'client' ? lie : '']
      const client = new Child(t, program('hostile-count'), args, relinked({ env }))
      const [honest, false_] = liar === 'client' ? [server, client] : [client, server]
      const told = honest.receive<Told>()
      const mayEnd = ending.test('end')
      await Promise.race([told, sleep(mayEnd ? PLAY_MS : NOTICED_MS)])
      false_.send({})
      const { isRight, received, end } = await told
      t.match(end, ending, `${lie}: ${end} after ${received} bytes`)
      // Its own bytes twice are for its own program to bear.
      if (lie !== 'twice') t.ok(isRight, `${lie}: no byte is in the place of another`)
      await Promise.all([server.kill(), client.kill()])
    }
  })
