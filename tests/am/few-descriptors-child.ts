/** A process at its limit of descriptors maps a destination that already stands for an endpoint. */
import { closeSync, openSync } from 'node:fs'
import { openEndpoint } from '../../am/index.ts'
import { driversOf } from '../support/driver-lists.ts'
import { errorOf } from '../support/endpoints.ts'
import { ANSWER, ECHO } from './endpoint-questions.ts'

const options = { drivers: driversOf(process.argv[2]) }
const [a, b, c] = [await openEndpoint(options), await openEndpoint(options), await openEndpoint(options)]
for (const [number, endpoint] of [a, b, c].entries())
  endpoint.setHandler(ECHO, message => message.reply(ANSWER, number))
await a.map(0, b.name)

const files: number[] = []
let limit: unknown
while (limit === undefined) {
  try {
    files.push(openSync('/dev/null', 'r'))
  } catch (error) {
    limit = (error as NodeJS.ErrnoException).code
  }
}
const { code } = (await errorOf(a.map(0, c.name))) as { code?: string }
for (const file of files) closeSync(file)
const before = (await a.call(0, ECHO)).word(0)
await a.map(0, c.name)
const after = (await a.call(0, ECHO)).word(0)
process.send?.({ limit, code, before, after })
await Promise.all([a.close(), b.close(), c.close()])
process.disconnect()
