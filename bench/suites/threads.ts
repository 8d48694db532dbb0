import { measureClients } from '../clients-together.ts'
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
    measureClients(context, 'threads', 'threads', (contestant, most, use) =>
      withUnconnected(
        contestant,
        1,
        async ({ clients: [client], address }) => {
          if (client === undefined) throw new Error('there is no client')
          await client.ask({ ask: 'startThreads', count: most })
          await client.askThreads({ ask: 'dial', address })
          const samples = await use((count, times) =>
            client.askThreads({ ask: 'pingPong', size: SMALL, ...times }, count),
          )
          await client.askThreads({ ask: 'close' })
          return samples
        },
        PATIENCE,
      ),
    ),
}
