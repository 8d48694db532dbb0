/** The RDMA devices that the kernel offers to user programs, by sysfs alone. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'

const USER_DEVICES = '/sys/class/infiniband_verbs'

/** Names of the kernel's devices, including those that the library does not know. */
export function deviceNames(): string[] {
  return entriesOf(USER_DEVICES)
    .map(deviceOf)
    .filter(name => name !== '')
}

/** The device's entry in sysfs. It disappears when the device is removed, or waits for its users to close it. */
export function userDeviceOf(device: string): string {
  return `${USER_DEVICES}/${entriesOf(USER_DEVICES).find(entry => deviceOf(entry) === device)}`
}

/** The name of the device that a file of /dev/infiniband stands for. */
function deviceOf(entry: string): string {
  return read(`${USER_DEVICES}/${entry}/ibdev`)
}

export function entriesOf(path: string): string[] {
  try {
    return existsSync(path) ? readdirSync(path) : []
  } catch {
    return []
  }
}

/** The text of a file; '' if it cannot be read, as an unused row of a device's table of addresses. */
export function read(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}
