/**
 * Node's permission model (`--permission`). Newer Node checks the right to use the network (`--allow-net`) whenever a
 * socket connects, binds or listens, and a program may drop the right while it runs. Connections that use no socket
 * of Node are checked here.
 */
type Permission = { has(scope: string): boolean }

const { permission } = process as { permission?: Permission }
/** False also in older Node, whose permission model does not cover the network. */
const asks = permission !== undefined && process.allowedNodeEnvironmentFlags.has('--allow-net')

export function mayUseNetwork(): boolean {
  return !asks || (permission as Permission).has('net')
}

/** Throws the error that Node's own sockets throw. */
export function assertMayUseNetwork(): void {
  if (mayUseNetwork()) return
  const error = new Error('Access to this API has been restricted. Use --allow-net to manage permissions.')
  throw Object.assign(error, { code: 'ERR_ACCESS_DENIED', permission: 'Net', resource: '' })
}
