import { hostSetting, startsFast, wireSetting } from '../half-settings.ts'
import type { Contestant } from './contestant.ts'
import { dialSockets, serveSockets } from './socket-halves.ts'
import { assertWire } from './wire.ts'

export const contestant: Contestant = {
  name: 'net-relinked',
  what: 'the same program, both halves relinked',
  abilities: ['pingPong', 'stream', 'connect', 'hold'],
  polls: false,
  relinked: ['server', 'client'],
  partner: 'server',
  serve: () => serveSockets(() => ({ host: hostSetting(), port: 0 })),
  dial: async address =>
    await dialSockets(address, startsFast() ? await assertWire(wireSetting()) : undefined),
}
