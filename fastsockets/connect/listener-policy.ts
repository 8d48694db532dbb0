/** What a policy means for a listener. */
import { isIP, type Server } from 'node:net'
import { nextTick } from '../../nic/real-time.ts'
import { isFastHandle } from '../handle/fast-handle.ts'
import type { TcpHandle } from '../host/node-internals.ts'
import { decide, decidePath } from '../policy/own-policy.ts'
import type { Decision } from '../policy/policy.ts'
import { RequiredError } from '../policy/required-error.ts'
import type { FallbackReason } from '../reasons.ts'
import type { FastServer } from './listeners.ts'

const NO_RULE: Decision = { use: 'fast', because: 'it has no address', isRule: false }

export function decideListener(server: Server): Decision {
  const name = server.address()
  if (name === null) return NO_RULE
  if (typeof name === 'string') return decidePath('server', name)
  return decide('server', name.address, name.port)
}

/** What holds for a connect of this program, as far as it is known before the name is resolved. */
export function decideByName(host: string, port: unknown): Decision {
  const address = host === 'localhost' ? '127.0.0.1' : isIP(host) === 0 ? undefined : host
  return decide('client', address, Number(port))
}

/** The policy requires the fast way of a listener that has it: whoever comes by TCP is hung up on. */
export function refuseTcpClients(server: FastServer): void {
  const shadow = server._handle
  const accept = shadow?.onconnection
  if (shadow === null || accept === undefined) return
  shadow.onconnection = function (this: unknown, status: number, client?: object): void {
    if (status === 0 && !isFastHandle(client)) (client as TcpHandle).close()
    else accept.call(shadow, status, client as object)
  }
}

/** The policy requires the fast way of a listener that cannot have it: it does not listen. */
export function failListening(server: Server, reason: FallbackReason): void {
  server.close()
  nextTick(() => server.emit('error', new RequiredError(reason)))
}
