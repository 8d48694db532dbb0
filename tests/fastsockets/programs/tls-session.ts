/**
 * Connects twice to tls-server.ts, and the second time has the session of the first, which it sets while the socket
 * connects. Tells { transport, isReused }. argv: port
 */
import { once } from 'node:events'
import type net from 'node:net'
import tls from 'node:tls'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { credentials } from './dialogue.ts'

/** Each time by another name: what is known of the first says nothing of the second. */
function connect(host: string): tls.TLSSocket {
  return tls.connect({
    port: Number(process.argv[2]),
    host,
    lookup: ((_host, _options, callback) =>
      process.nextTick(callback, null, '127.0.0.1', 4)) as net.LookupFunction,
    autoSelectFamily: false,
    servername: 'server.test',
    ca: credentials().cert,
    checkServerIdentity: () => undefined,
    // Where a session is there with the handshake.
    maxVersion: 'TLSv1.2',
  } as tls.ConnectionOptions)
}

const first = connect('first.test')
await once(first, 'secureConnect')
const session = first.getSession() as Buffer
first.destroy()

// @types/node has forgotten it.
const second = connect('second.test') as tls.TLSSocket & { setSession(session: Buffer): void }
second.setSession(session)
await once(second, 'secureConnect')
const { transport } = transportOf(second)
process.send?.({ transport, isReused: second.isSessionReused() }, () => process.exit())
