/** Serves Connect's own service for conformance. argv: the module of its routes; bytes of the longest message, or nothing. */
import type { ConnectRouter } from '@connectrpc/connect'
import { openEndpoint } from '../../am/index.ts'
import { serveConnect } from '../../am/rpc/connect/index.ts'

const [module, limit] = process.argv.slice(2)
const { default: routes } = (await import(module as string)) as { default: (router: ConnectRouter) => void }
const endpoint = await openEndpoint()
serveConnect(endpoint, routes, limit === undefined ? {} : { readMaxBytes: Number(limit) })
process.once('disconnect', () => process.exit(0))
process.send?.({ name: endpoint.name })
