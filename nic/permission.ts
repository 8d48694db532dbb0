/**
 * Node's permission model (`--permission`): newer Node asks it for the right to use the network (`--allow-net`) whenever a
 * socket connects, binds or listens, and a program may give the right up while it runs. Roads that ask no socket of Node's
 * own ask here.
 */
type Permission = { has(scope: string): boolean }

const { permission } = process as { permission?: Permission }
/** Older Node has a model, and asks it nothing about the network. */
const asks = permission !== undefined && process.allowedNodeEnvironmentFlags.has('--allow-net')

export function mayUseNetwork(): boolean {
  return !asks || (permission as Permission).has('net')
}

/** Throws what Node's own sockets do. */
export function assertMayUseNetwork(): void {
  if (mayUseNetwork()) return
  const error = new Error('Access to this API has been restricted. Use --allow-net to manage permissions.')
  throw Object.assign(error, { code: 'ERR_ACCESS_DENIED', permission: 'Net', resource: '' })
}
