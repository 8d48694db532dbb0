import { measureClients, roundTripsTogether } from '../clients-together.ts'
import { withUnconnected } from '../half.ts'
import { PATIENCE } from '../half-settings.ts'
import { SMALL } from '../sizes.ts'
import type { Suite } from '../suite.ts'

/** The client's main thread only forwards questions; each worker thread has its own connection. */
export const threads: Suite = {
  name: 'threads',
  what: '64 B round trips of many worker threads of one client process with one server',
  quickSeconds: 3,
  run: context =>
    measureClients(context, 'threads', (contestant, count, times) =>
      withUnconnected(
        contestant,
        1,
        async ({ clients: [client], address }) => {
          if (client === undefined) throw new Error('there is no client')
          await client.ask({ ask: 'startThreads', count })
          await client.askThreads({ ask: 'dial', address })
          const all = await client.askThreads({ ask: 'pingPong', size: SMALL, ...times })
          await client.askThreads({ ask: 'close' })
          return roundTripsTogether(all, { threads: count })
        },
        PATIENCE,
      ),
    ),
}
