/** RPC between two hosts without RDMA: arguments of all sizes, a slow reader, and the death of the serving process. */
import t from 'tap'
import { childOn, keyFileOf, makeTwoHosts, noTwoHosts } from '../../support/two-hosts.ts'
import type { Answered, Flooded, Lost } from './host-client-child.ts'

const skip = noTwoHosts()
if (skip) t.comment(`SKIPPED: RPC on two hosts: ${skip}`)
const server = new URL('./service-child.js', import.meta.url)
const client = new URL('./host-client-child.js', import.meta.url)

for (const driver of ['tcp', 'ethernet']) {
  t.test(`${driver}: a service of another host`, { skip }, async t => {
    const { near, far } = makeTwoHosts(t)
    const env = { FASTSOCKETS_KEY_FILE: keyFileOf(t) }
    const serving = childOn(t, far, server, [driver, '', '0.0.0.0:7400'], env)
    const { name } = await serving.receive<{ name: string }>()
    const calling = childOn(t, near, client, [driver, name], env)
    const answered = await calling.receive<Answered>()
    t.strictSame(answered, { driver, sizes: [0, 64, 65_537, 1 << 20], isWhole: true })
    const { produced, bound, items } = await calling.receive<Flooded>()
    t.equal(items, 2000)
    t.ok(
      produced <= bound,
      `${produced} items were made for a reader that has taken one; the bound is ${bound}`,
    )
    await calling.receive()
    await serving.kill()
    const { codes } = await calling.receive<Lost>()
    t.strictSame(
      codes,
      Array.from({ length: 101 }, () => 'ERR_RPC_UNAVAILABLE PEER_DEAD'),
    )
  })
}
