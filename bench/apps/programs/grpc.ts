/** gRPC by @grpc/grpc-js: calls with one answer, and a stream from the server. */
import grpc from '@grpc/grpc-js'
import { HOST, Meter, measureRoundTrips, play } from './program.ts'

const same = (value: Buffer): Buffer => value
const bytes = {
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
}
const METHODS = {
  echo: { path: '/bench/echo', requestStream: false, responseStream: false, ...bytes },
  list: { path: '/bench/list', requestStream: false, responseStream: true, ...bytes },
} as const
const SMALL = Buffer.alloc(64, 'x')
const ITEM = Buffer.alloc(4096, 'y')

function serve(): Promise<number> {
  const server = new grpc.Server()
  server.addService(METHODS, {
    echo: (call: grpc.ServerUnaryCall<Buffer, Buffer>, answer: grpc.sendUnaryData<Buffer>) =>
      answer(null, call.request),
    list(call: grpc.ServerWritableStream<Buffer, Buffer>) {
      const more = (): void => {
        while (!call.cancelled) if (!call.write(ITEM)) return void call.once('drain', more)
      }
      more()
    },
  })
  return new Promise((resolve, reject) =>
    server.bindAsync(`${HOST}:0`, grpc.ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    ),
  )
}

play({
  serve,
  async call(port, ms) {
    const client = new grpc.Client(`${HOST}:${port}`, grpc.credentials.createInsecure())
    const unary = await measureRoundTrips('unary 64 B', ms, () => {
      return new Promise((resolve, reject) =>
        client.makeUnaryRequest(METHODS.echo.path, same, same, SMALL, (error, value) =>
          error === null ? resolve(value) : reject(error),
        ),
      )
    })
    const meter = new Meter(ms)
    const stream = client.makeServerStreamRequest(METHODS.list.path, same, same, SMALL)
    stream.on('error', () => {})
    await new Promise<void>(resolve =>
      stream.on('data', () => {
        if (meter.count(1)) resolve()
      }),
    )
    stream.cancel()
    client.close()
    return [unary, { part: 'stream of 4 KiB', metric: 'rate', unit: '1/s', value: meter.perSecond }]
  },
})
