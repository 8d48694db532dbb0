/** Comlink's adapter for ports of Node, whose declarations its package does not export. */
import { createRequire } from 'node:module'
import type * as Comlink from 'comlink'

type Adapt = (port: object) => Comlink.Endpoint
export const nodeEndpoint = createRequire(import.meta.url)('comlink/dist/umd/node-adapter.js') as Adapt
