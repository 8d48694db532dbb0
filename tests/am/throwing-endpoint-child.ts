/** Two endpoints of one process whose handlers throw now and then. */
import { OK, openEndpoint } from '../../am/index.ts'
import { driversOf } from '../support/driver-lists.ts'
import { until } from '../support/until.ts'

const COUNT = 30
const REQUEST = 1
const ANSWER = 2
const STREAM = 3
const NOBODY = 99

const drivers = driversOf(process.argv[2])
const errors: string[] = []
if (process.argv[3] !== 'uncaught') process.on('uncaughtException', error => errors.push(error.message))

const [a, b] = [await openEndpoint({ drivers, credits: 4 }), await openEndpoint({ drivers, credits: 4 })]
await a.map(0, b.name)
const requests: number[] = []
const replies: number[] = []
const returns: number[] = []

b.setHandler(REQUEST, message => {
  const number = message.word(0)
  requests.push(number)
  message.reply(ANSWER, number)
  if (number % 3 === 0) throw new Error(`request ${number}`)
})
a.setHandler(ANSWER, message => {
  const number = message.word(0)
  replies.push(number)
  if (number % 3 === 0) throw new Error(`reply ${number}`)
})
a.setHandler(0, message => {
  const number = message.word(0)
  returns.push(number)
  if (number % 3 === 0) throw new Error(`return ${number}`)
})
b.messages(STREAM).subscribe(message => {
  if (message.word(0) === 1) throw new Error('subscriber 1')
})

for (let number = 0; number < COUNT; number++) {
  for (const handler of [REQUEST, NOBODY, STREAM]) {
    while (a.request(0, handler, number) !== OK) await a.ready(0)
  }
}
await until('all of it', () => [requests, replies, returns].every(list => list.length === COUNT))
await until('the last error', () => errors.length === COUNT + 1)
const inOrder = (numbers: number[]): number[] => numbers.toSorted((x, y) => x - y)
process.send?.({
  errors: errors.toSorted(),
  requests: inOrder(requests),
  replies: inOrder(replies),
  returns: inOrder(returns),
})
await Promise.all([a.close(), b.close()])
process.disconnect()
