import t, { type Test } from 'tap'
import { drivers } from '../../nic/index.ts'
import { Child } from '../support/child.ts'

/** Each child counts its own garbage. */
t.jobs = 2

const fixture = new URL('./alloc-child.js', import.meta.url)

/** Bytes per frame, message or exchange of messages. */
async function measure(t: Test, ...what: string[]): Promise<number> {
  const child = new Child(t, fixture, what, { execArgv: ['--expose-gc', '--min-semi-space-size=128'] })
  return (await child.receive<{ bytes: number }>()).bytes
}

t.test('the measurement sees an object that is allocated per round', { buffered: true }, async t => {
  const bytes = await measure(t, 'control')
  t.ok(bytes > 8, `${bytes} bytes a round`)
})

t.test('to reserve, commit and poll a frame allocates nothing', { buffered: true }, async t => {
  const bytes = await measure(t, 'frames')
  t.ok(bytes < 1, `${bytes} bytes a frame`)
})

t.test(
  'to send a frame reliably, to check it, hand it over and acknowledge it allocates nothing',
  { buffered: true },
  async t => {
    const bytes = await measure(t, 'reliable')
    // The clock costs 16 bytes for each look, and is looked at more often while the machine is busy.
    t.ok(bytes < 4, `${bytes} bytes a frame`)
  },
)

t.test('to send and handle a short request allocates nothing', { buffered: true }, async t => {
  const bytes = await measure(t, 'messages')
  t.ok(bytes < 1, `${bytes} bytes a message`)
})

for (const [name, driver] of drivers) {
  const availability = driver.availability()
  const skip = availability.usable ? false : availability.reason
  // A poll that calls the kernel takes longer, so the clock is looked at more often: 16 bytes for each look. A view of
  // memory would be a hundred.
  const bytesMax = driver.needsAddress ? 4 : 1

  for (const kind of ['short', 'medium']) {
    t.test(
      `over ${name} a ${kind} request, its handler and its reply allocate nothing`,
      { skip, buffered: true },
      async t => {
        const bytes = await measure(t, kind, name)
        t.ok(bytes < bytesMax, `${bytes} bytes an exchange`)
      },
    )
  }
}

t.test('to send and receive 64 bytes by raw sockets allocates nothing', { buffered: true }, async t => {
  const bytes = await measure(t, 'raw')
  t.ok(bytes < 1, `${bytes} bytes a round trip`)
})

t.test('to send and receive 64 bytes by message sockets allocates nothing', { buffered: true }, async t => {
  const bytes = await measure(t, 'messageSockets')
  t.ok(bytes < 1, `${bytes} bytes a round trip`)
})
