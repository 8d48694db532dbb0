/** Serves the printer, in a process of its own. argv: a list of drivers; a name to publish; where to listen. */
import { range } from 'rxjs'
import { type Endpoint, type EndpointOptions, openEndpoint } from '../../../am/index.ts'
import { type Handlers, serve } from '../../../am/rpc/index.ts'
import { optionsOf } from '../../support/driver-lists.ts'
import { printer } from './printer.ts'

const codes: string[] = []
let produced = 0

export const handlers: Handlers<(typeof printer)['methods']> = {
  print: async job => ({ pages: job.text.length * (job.copies ?? 1), job }),
  echo: value => value,
  json: value => value,
  packed: value => value,
  text: value => ({ ...value, text: `re: ${value.text}` }),
  bytes: value => value,
  fail: text => {
    const cause = Object.assign(new TypeError('no paper'), { code: 'E_PAPER' })
    throw Object.assign(new RangeError(text, { cause }), { code: 'E_PRINTER', details: { tray: 2 } })
  },
  hang: (_, { signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        codes.push(signal.reason.code)
        reject(signal.reason)
      })
    }),
  cancelled: () => codes,
  nothing: () => {},
  count: async function* (to) {
    for (let i = 0; i < to; i++) yield i
  },
  observed: to => range(0, to),
  flood: async function* ({ items, bytes }) {
    for (let i = 0; i < items; i++) {
      produced++
      const item = new Uint8Array(bytes)
      new DataView(item.buffer).setUint32(0, i)
      yield item
    }
  },
  produced: () => produced,
  breaks: async function* () {
    yield 1
    throw Object.assign(new Error('jammed'), { code: 'E_JAM' })
  },
  /** A service may be an object of a class: its handlers keep `this`. */
  pid() {
    return this === handlers ? process.pid : -1
  },
}

if (process.send !== undefined && process.argv[1]?.endsWith('service-child.js')) {
  const [list, name, listen] = process.argv.slice(2)
  const chosen = (): EndpointOptions =>
    listen === undefined ? optionsOf(list) : { drivers: [list as string], listen }
  const options = { ...(list !== 'all' && chosen()), ...(name && { name }) }
  const endpoint: Endpoint = await openEndpoint(options)
  serve(endpoint, printer, handlers)
  process.on('message', () => endpoint.close().then(() => process.exit(0)))
  process.once('disconnect', () => process.exit(0))
  process.send({ name: endpoint.name })
}
