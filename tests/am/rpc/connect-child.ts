/** Serves Connect's routes, in a process of its own. argv: a list of drivers. */
import { createContextValues } from '@connectrpc/connect'
import { openEndpoint } from '../../../am/index.ts'
import { serveConnect } from '../../../am/rpc/connect/index.ts'
import { optionsOf } from '../../support/driver-lists.ts'
import { CALLER, routes } from './connect-routes.ts'

const endpoint = await openEndpoint({ ...optionsOf(process.argv[2]) })
serveConnect(endpoint, routes, { contextValues: source => createContextValues().set(CALLER, source) })
process.once('disconnect', () => process.exit(0))
process.send?.({ name: endpoint.name })
