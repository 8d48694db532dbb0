/** Frames of active messages, of which something is wrong, to an endpoint's channel with a guarded segment. */
import { UNDELIVERABLE } from '../../../../am/undeliverable.ts'
import { openLoopbackPair } from '../../../../nic/index.ts'
import { RING_SIZE_MIN } from '../../../../nic/ring/ring-layout.ts'
import { openChannelPair, sendRequest, settle } from '../../../support/channels.ts'
import { EndpointSide, withoutOneSided } from '../../../support/endpoint-channels.ts'
import { HostilePeer } from '../../../support/hostile-peer.ts'
import type { Attack, Kind } from '../kind.ts'

/** Frames on one channel, if it is not ended before. */
const FRAMES_EACH = 400
const FRAMES_A_TURN = 4
const TURNS_MAX = 100

export const amMessages: Kind = {
  name: 'am-messages',
  what: 'requests, replies, long messages, gets and credits, to the channel of an endpoint',
  reaches: ['handled', 'channel ended', 'channel open'],
  open: () => ({
    attack({ random, inputs, victim, count, wrong }: Attack) {
      for (let sent = 0; sent < inputs; ) {
        const [near, far] = openLoopbackPair(RING_SIZE_MIN)
        const credits = random.pick([1, 2, 8, 64])
        const segment = random.pick([0, 1, 100, 5000, 40_000])
        const side = new EndpointSide(random.chance(0.5) ? withoutOneSided(far) : far, { credits, segment })
        for (let index = 0; index < 256; index++) {
          side.group.setHandler(index, message => {
            count('handled')
            const { bytes, offset, length } = message
            if (offset < 0 || offset + length > bytes.length) wrong(`${length} bytes at ${offset}`)
            if (message.isRequest && index % 3 === 0) message.reply(index, 1)
          })
        }
        const peer = new HostilePeer(near, random, { credits, segmentSize: segment, tag: [0, 0] })
        const malice = random.pick([0, 0.01, 0.1, 1])
        for (let said = 0; said < FRAMES_EACH && side.channel.state === 'open'; said += FRAMES_A_TURN) {
          for (let i = 0; i < FRAMES_A_TURN; i++) {
            if (random.chance(malice)) peer.sayAnything()
            else peer.sayWhatIsAllowed()
          }
          victim(() => side.group.poll(random.within(1, 20)))
          if (random.chance(0.3)) peer.listen()
        }
        count(side.channel.state === 'open' ? 'channel open' : 'channel ended')
        victim(() => side.channel.lose(UNDELIVERABLE.PEER_DEAD))
        for (let turn = 0; turn < TURNS_MAX && !side.channel.isOver; turn++) side.group.poll()
        if (!side.channel.isOver || side.channel.creditsLeft !== credits)
          wrong(`${side.channel.creditsLeft} of ${credits} credits came back`)
        if (!side.isGuardWhole) wrong('there was a write beside the segment')
        sent += Math.max(1, peer.sent)
      }
    },
    honest() {
      const [a, b] = openChannelPair()
      let heard = 0
      b.group.setHandler(1, message => {
        heard = message.word(0)
      })
      sendRequest(a.channel, 1, [42])
      settle(a, b)
      if (heard !== 42) throw new Error(`an honest message said ${heard}`)
    },
  }),
}
