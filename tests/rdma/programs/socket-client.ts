/** A client that says one word, and then waits for its end. */
import net from 'node:net'
import { describeDevice } from '../../../nic/index.ts'

// It opens the device, for which an emulator needs longer than a server waits for the HELLO of a caller that it has greeted.
describeDevice()
const [host = '', port = ''] = process.argv.slice(2)
const socket = net.connect(Number(port), host, () => socket.write('hello'))
