/** @grpc/grpc-js: the four kinds of call, metadata, statuses, large messages, deadlines, calls that are cancelled. */
import { once } from 'node:events'
import grpc from '@grpc/grpc-js'
import { HOST } from '../../support/placement.ts'
import { bytesOf, digest, heard, type Journal, largeBytes } from '../journal.ts'
import { deadPort, type Place, play, type Service } from '../scenario.ts'

const bytes = {
  requestSerialize: (value: Buffer) => value,
  requestDeserialize: (value: Buffer) => value,
  responseSerialize: (value: Buffer) => value,
  responseDeserialize: (value: Buffer) => value,
}
const METHODS = {
  echo: { path: '/interop/echo', requestStream: false, responseStream: false, ...bytes },
  list: { path: '/interop/list', requestStream: false, responseStream: true, ...bytes },
  sum: { path: '/interop/sum', requestStream: true, responseStream: false, ...bytes },
  talk: { path: '/interop/talk', requestStream: true, responseStream: true, ...bytes },
  never: { path: '/interop/never', requestStream: false, responseStream: false, ...bytes },
} as const
const LIMITS = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 }

type Unary = grpc.ServerUnaryCall<Buffer, Buffer>
type Answer = grpc.sendUnaryData<Buffer>

async function serve(journal: Journal): Promise<Service> {
  const server = new grpc.Server(LIMITS)
  server.addService(METHODS, {
    echo(call: Unary, answer: Answer) {
      const trailer = new grpc.Metadata()
      trailer.set('x-saw', String(call.metadata.get('x-sent')))
      if (call.request.toString() === 'fail') {
        answer({ code: grpc.status.FAILED_PRECONDITION, details: 'not today' }, null, trailer)
      } else answer(null, call.request, trailer)
    },
    list(call: grpc.ServerWritableStream<Buffer, Buffer>) {
      call.on('cancelled', () => journal.note('server list', 'cancelled'))
      const count = Number(call.request.toString())
      let i = 0
      const more = (): void => {
        while (i < count && !call.cancelled) if (!call.write(bytesOf(10_000, `${i++}`))) break
        if (i < count && !call.cancelled) call.once('drain', more)
        else call.end()
      }
      more()
    },
    sum(call: grpc.ServerReadableStream<Buffer, Buffer>, answer: Answer) {
      let count = 0
      call.on('data', () => count++)
      call.on('end', () => answer(null, Buffer.from(String(count))))
    },
    talk(call: grpc.ServerDuplexStream<Buffer, Buffer>) {
      call.on('data', (message: Buffer) => call.write(Buffer.from(`you said ${message}`)))
      call.on('end', () => {
        journal.note('server talk', 'end')
        call.end()
      })
    },
    never(call: Unary) {
      call.on('cancelled', () => journal.note('server never', 'cancelled'))
    },
  })
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync(`${HOST}:0`, grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  )
  return {
    place: { port, dead: await deadPort() },
    close: () => new Promise<void>(resolve => server.tryShutdown(() => resolve())),
  }
}

async function call({ port, dead }: Place, journal: Journal): Promise<void> {
  const Client = grpc.makeGenericClientConstructor(METHODS, 'interop')
  const client = new Client(`${HOST}:${port}`, grpc.credentials.createInsecure(), LIMITS) as grpc.Client
  const metadata = new grpc.Metadata()
  metadata.set('x-sent', 'hello')

  const describe = (event: string, value: unknown): string => {
    if (event === 'status') {
      const { code, details, metadata: trailer } = value as grpc.StatusObject
      return `${code} ${details} ${trailer.get('x-saw')}`
    }
    return event === 'data' ? digest(value as Buffer) : ''
  }
  /** One call with one answer. */
  function unary(
    name: string,
    path: keyof typeof METHODS,
    body: Buffer,
    options: grpc.CallOptions = {},
    by = client,
  ) {
    let call: grpc.ClientUnaryCall | undefined
    const done = new Promise<void>(resolve => {
      call = by.makeUnaryRequest(
        METHODS[path].path,
        (value: Buffer) => value,
        (value: Buffer) => value,
        body,
        metadata,
        options,
        (error, value) => {
          journal.note(name, error === null ? digest(value as Buffer) : `${error.code} ${nameOf(error.code)}`)
          resolve()
        },
      )
    })
    const under = call as unknown as grpc.ClientUnaryCall
    const status = once(under, 'status').then(([value]) => {
      if (name !== 'refused' && name !== 'deadline') journal.note(`${name} status`, describe('status', value))
    })
    return { call: under, done: Promise.all([done, status]) }
  }

  await unary('echo', 'echo', Buffer.from('hello')).done
  await unary('large', 'echo', largeBytes()).done
  await unary('fail', 'echo', Buffer.from('fail')).done
  await Promise.all(
    Array.from({ length: 100 }, (_, i) => unary(`echo ${i}`, 'echo', bytesOf(i * 500, `${i}`)).done),
  )

  const identity = (value: Buffer): Buffer => value
  const list = client.makeServerStreamRequest(
    METHODS.list.path,
    identity,
    identity,
    Buffer.from('300'),
    metadata,
  )
  journal.watch('list', list, ['data', 'end', 'status', 'error'], describe)
  await once(list, 'status')
  const cancelled = client.makeServerStreamRequest(
    METHODS.list.path,
    identity,
    identity,
    Buffer.from('100000'),
    metadata,
  )
  journal.watch('cancelled list', cancelled, ['end', 'status'], describe)
  cancelled.once('data', () => cancelled.cancel())
  cancelled.on('error', error => journal.note('cancelled list', error.message))
  cancelled.resume()
  await heard(cancelled, 'status')

  await new Promise<void>(resolve => {
    const sum = client.makeClientStreamRequest(
      METHODS.sum.path,
      identity,
      identity,
      metadata,
      {},
      (error, value) => {
        journal.note('sum', error, value)
        resolve()
      },
    )
    for (let i = 0; i < 500; i++) sum.write(bytesOf(2000, `${i}`))
    sum.end()
  })

  const talk = client.makeBidiStreamRequest(METHODS.talk.path, identity, identity, metadata)
  journal.watch('talk', talk, ['data', 'end', 'status', 'error'], describe)
  for (let i = 0; i < 20; i++) {
    talk.write(Buffer.from(`word ${i}`))
    await once(talk, 'data')
  }
  talk.end()
  await once(talk, 'status')

  await unary('deadline', 'never', Buffer.alloc(0), { deadline: Date.now() + 100 }).done
  const never = unary('cancel', 'never', Buffer.alloc(0))
  setTimeout(() => never.call.cancel(), 50)
  await never.done
  client.close()
  const nobody = new Client(`${HOST}:${dead}`, grpc.credentials.createInsecure()) as grpc.Client
  await unary('refused', 'echo', Buffer.alloc(0), {}, nobody).done
  nobody.close()
}

const nameOf = (code: grpc.status | undefined): string => (code === undefined ? 'none' : grpc.status[code])

play({ serve, call })
