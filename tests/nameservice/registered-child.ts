/** Registers two names, and prints each state of the first. argv: socket */
import { NameClient } from '../../nameservice/index.ts'

// It stays until its parent goes.
process.on('message', () => {})
process.on('disconnect', () => process.exit())

const client = new NameClient({ address: process.argv[2] as string, ttlMs: 60_000 })
await client.register({ name: 'removed', endpoint: 'e' }).registered
client.register({ name: 'mine', endpoint: 'e' }, { onState: state => process.send?.({ state }) })
