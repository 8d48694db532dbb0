import { measureClients } from '../clients-together.ts'
import { withClients } from '../half.ts'
import { PATIENCE } from '../half-settings.ts'
import { SMALL } from '../sizes.ts'
import type { Suite } from '../suite.ts'

export const fanin: Suite = {
  name: 'fanin',
  what: '64 B round trips of many client processes with one server',
  quickSeconds: 3,
  run: context =>
    measureClients(context, 'fanin', 'clients', (contestant, most, use) =>
      withClients(
        contestant,
        most,
        ({ clients }) =>
          use((count, times) =>
            Promise.all(
              clients.slice(0, count).map(client => client.ask({ ask: 'pingPong', size: SMALL, ...times })),
            ),
          ),
        PATIENCE,
      ),
    ),
}
