/** Registers a name and closes its client at once. Nothing else keeps it alive meanwhile. */
import { NameClient } from '../../nameservice/index.ts'

process.channel?.unref()
const client = new NameClient({ address: process.argv[2] as string })
client.register({ name: 'mine', endpoint: 'e' })
await client.close()
process.send?.({ closed: true })
