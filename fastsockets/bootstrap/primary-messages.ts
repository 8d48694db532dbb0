/** Messages of a cluster's primary about the bootstrap listeners of its workers (primary-listener.ts). */

/**
 * The primary's key of our listeners: address, port, address type, descriptor and, before Node 26, index of the query.
 */
const OUR_KEY = /:-(?!1(?::|$))\d+(?::\d+)?$/

/** Whether a primary has sent `message` to a worker, about one of our listeners. */
export function isAboutBootstrap(message: unknown): boolean {
  const { cmd, key } = (message ?? {}) as { cmd?: unknown; key?: unknown }
  return cmd === 'NODE_CLUSTER' && typeof key === 'string' && OUR_KEY.test(key)
}
