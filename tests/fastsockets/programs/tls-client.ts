/** Connects to tls-server.ts in one of several ways, and says what it has seen. argv: way port */
import net from 'node:net'
import tls from 'node:tls'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { closed, log } from './dialogue.ts'

const [way, port = '0'] = process.argv.slice(2)
const ALL_TRUSTED = { rejectUnauthorized: false }

/** Two addresses of one name. */
function lookUp(first: string): net.LookupFunction {
  const addresses = [first, '127.0.0.1'].map(address => ({ address, family: 4 }))
  return (_host, _options, callback) => process.nextTick(callback, null, addresses)
}

const WAYS: Readonly<Record<string, () => tls.TLSSocket>> = {
  over: () => tls.connect({ socket: net.connect(Number(port), '127.0.0.1'), ...ALL_TRUSTED }),
  /** The first address has no listener. Node itself crashes here. */
  'over-second': () => {
    const options = { port: Number(port), host: 'two', autoSelectFamily: true, lookup: lookUp('127.0.0.9') }
    return tls.connect({ socket: net.connect(options), ...ALL_TRUSTED })
  },
  /** The first address does not answer. */
  second: () => {
    const options = { port: Number(port), host: 'two', autoSelectFamily: true, lookup: lookUp('127.0.0.2') }
    return tls.connect({ ...options, ...ALL_TRUSTED } as tls.ConnectionOptions)
  },
}

const socket = WAYS[way as string]?.() as tls.TLSSocket
let transport = 'none'
socket.write('early words')
for (const event of ['connect', 'secureConnect', 'data', 'end', 'error', 'close'])
  socket.on(event, (argument = '') => log.push(`${event} ${argument}`))
socket.on('data', () => {
  transport = transportOf(socket).transport
})
await closed(socket)
process.send?.({ transport, log }, () => process.exit())
