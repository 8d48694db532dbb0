import { measureClients, roundTripsTogether } from '../clients-together.ts'
import { withClients } from '../half.ts'
import { SMALL } from '../sizes.ts'
import type { Suite } from '../suite.ts'

export const fanin: Suite = {
  name: 'fanin',
  what: '64 B round trips of many client processes with one server',
  quickSeconds: 3,
  run: context =>
    measureClients(context, 'fanin', (contestant, count, times) =>
      withClients(contestant, count, async ({ clients }) => {
        const all = await Promise.all(
          clients.map(client => client.ask({ ask: 'pingPong', size: SMALL, ...times })),
        )
        return roundTripsTogether(all, { clients: count })
      }),
    ),
}
