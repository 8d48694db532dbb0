/**
 * Says in one line of JSON what the driver finds. With a shell command as its argument: connects two ends first, runs the
 * command, which takes the device away in some manner, and says how the connection ended and what is found then.
 */
import { execFile } from 'node:child_process'
import { type Driver, describeDevice, drivers } from '../../../nic/index.ts'
import { sendFrame } from '../../support/frames.ts'
import { eventually } from '../../support/until.ts'

const verbs = drivers.get('verbs') as Driver
const [command] = process.argv.slice(2)

let commandEnded = false

async function loseDevice(command: string): Promise<unknown> {
  const offer = verbs.offer()
  const [near, far] = await Promise.all([verbs.connect(offer.blob), offer.accepted])
  let isRung = false
  near.setDoorbell(() => {
    isRung = true
  })
  near.ref()
  near.arm(0)
  // Some devices go only after their last user: then the command waits for us.
  execFile('sh', ['-c', command], () => {
    commandEnded = true
  })
  await eventually('the end of the connection', () => near.state !== 'open')
  await eventually('the doorbell', () => isRung)
  const { state, failure } = near
  const status = sendFrame(near, Buffer.alloc(8))
  far.close()
  near.close()
  await eventually('the end of the command', () => commandEnded)
  return { state, code: failure?.code, message: failure?.message, status }
}

const device = describeDevice()
const end = command === undefined ? undefined : await loseDevice(command)
console.log(JSON.stringify({ device, end, commandEnded, availability: verbs.availability() }))
process.exit()
