/** Registers a name and looks one up; then it has nothing more to do. */
import { NameClient } from '../../nameservice/index.ts'

const client = new NameClient({ address: process.argv[2] as string })
const { registered } = client.register({ name: 'mine', endpoint: 'e' })
// Something must keep a program alive that wants to wait for what goes on in the background.
const alive = setInterval(() => {}, 1000)
await registered
const { status } = await client.lookup('a')
clearInterval(alive)
process.send?.({ registered: true, looked: status })
process.disconnect()
