/** Routes as a program has them for HTTP, for both ways of serving them. */
import { Code, ConnectError, type ConnectRouter, createContextKey } from '@connectrpc/connect'
import { DetailSchema, Echo } from '../../../bench/programs/echo_pb.ts'

export const CALLER = createContextKey('nobody')

/** What the handlers have seen. */
export const seen = { aborted: [] as string[], made: 0 }

export function routes(router: ConnectRouter): void {
  router.service(Echo, {
    async unary({ text, count, data }, context) {
      context.responseHeader.set('x-answer', context.requestHeader.get('x-question') ?? 'none')
      context.responseHeader.set('x-caller', context.values.get(CALLER))
      context.responseTrailer.set('x-trailer', 'last')
      if (text === 'fail') {
        const details = [{ desc: DetailSchema, value: { reason: 'asked to' } }]
        throw new ConnectError('as told', Code.FailedPrecondition, { 'x-meta': 'data' }, details)
      }
      if (text === 'crash') throw new Error('a secret')
      if (text === 'hang') {
        await new Promise((_, reject) => {
          context.signal.addEventListener('abort', () => {
            seen.aborted.push(Code[ConnectError.from(context.signal.reason).code])
            reject(context.signal.reason)
          })
        })
      }
      if (text === 'seen') return { text: seen.aborted.join(), count: seen.made }
      return { text, count: context.timeoutMs() === undefined ? count : -1, data }
    },
    async *server({ count, data }, context) {
      context.responseHeader.set('x-answer', 'stream')
      context.responseTrailer.set('x-trailer', 'last')
      for (let i = 0; i < Math.abs(count); i++) {
        seen.made++
        yield { count: i, data }
      }
      if (count < 0) throw new ConnectError('broken', Code.DataLoss)
    },
    async client(requests) {
      let count = 0
      for await (const request of requests) count += request.count
      return { count }
    },
    async *bidi(requests) {
      for await (const request of requests) yield { ...request, text: `re: ${request.text}` }
    },
  })
}
