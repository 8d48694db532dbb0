/**
 * Which RDMA device, which of its ports and which address of it (GID) are used. The first port that is active, iWARP ones
 * last, unless the environment says otherwise:
 *
 *   FASTSOCKETS_VERBS_DEVICE      name, as in /sys/class/infiniband
 *   FASTSOCKETS_VERBS_PORT        number from 1
 *   FASTSOCKETS_VERBS_GID_INDEX   row of the port's table of addresses
 */
import { accessSync, constants } from 'node:fs'
import { basename } from 'node:path'
import { systemError } from '../posix/libc.ts'
import { MAPPED } from '../posix/socket-address.ts'
import { LINK_IWARP } from './address-layout.ts'
import { type ConnectionManager, openManager } from './connection-manager.ts'
import { deviceNames, entriesOf, read, userDeviceOf } from './kernel-devices.ts'
import {
  GID_SIZE,
  LINK_ETHERNET,
  LINK_INFINIBAND,
  MTU_MAX,
  MTU_MIN,
  PORT_ACTIVE,
  PORT_ACTIVE_MTU,
  PORT_LID,
  PORT_LINK_LAYER,
  PORT_SIZE,
  PORT_STATE,
} from './library-layout.ts'
import { FORK_UNNEEDED, type Pointer, type VerbsLibrary } from './verbs-library.ts'

const SYSFS = '/sys/class/infiniband'
const DEVICE_VARIABLE = 'FASTSOCKETS_VERBS_DEVICE'
const PORT_VARIABLE = 'FASTSOCKETS_VERBS_PORT'
const GID_VARIABLE = 'FASTSOCKETS_VERBS_GID_INDEX'
const LINK_LOCAL = Buffer.from('fe80', 'hex')
/** Node type of iWARP devices in sysfs. */
const IWARP = 'RNIC'

export interface Port {
  readonly device: string
  readonly number: number
  readonly gidIndex: number
  readonly gid: Buffer
  readonly lid: number
  /** As enum ibv_mtu. */
  readonly mtu: number
  /** The value of libibverbs, or LINK_IWARP. */
  readonly linkLayer: number
}

/** Why no device can be used. */
export interface NoDevice {
  readonly code: string
  readonly reason: string
}

export interface ChosenDevice {
  readonly context: Pointer
  readonly port: Port
  /** Present for iWARP devices. */
  readonly manager?: ConnectionManager
}

/** An open context and the port to use, or why there is none; `open` contexts that are not used are closed. */
export function chooseDevice(library: VerbsLibrary): ChosenDevice | NoDevice {
  const wanted = process.env[DEVICE_VARIABLE]
  const count = Buffer.alloc(8)
  const list = library.ibv_get_device_list(count)
  if (list === null) {
    const { message } = systemError(library.libc, 'ibv_get_device_list')
    return { code: 'VERBS_NO_DEVICE', reason: `the kernel knows of no RDMA device: ${message}` }
  }
  try {
    let refusal = reasonForNone(wanted)
    const devices = Array.from({ length: count.readInt32LE(0) }, (_, i) => {
      const device = library.readPointer(list, 8 * i)
      return { device, name: library.ibv_get_device_name(device) }
    })
    for (const { device, name } of devices.sort(
      (a, b) => Number(isIwarp(a.name)) - Number(isIwarp(b.name)),
    )) {
      if (wanted && name !== wanted) continue
      const found = openDevice(library, device, name)
      if ('context' in found) return found
      refusal = found
    }
    return refusal
  } finally {
    library.ibv_free_device_list(list)
  }
}

/** The kernel may have devices for which the library has no driver. */
function reasonForNone(wanted: string | undefined): NoDevice {
  const devices = deviceNames()
  const unknown = wanted === undefined ? devices : devices.filter(name => name === wanted)
  if (unknown.length > 0) {
    const reason = `libibverbs has no provider for ${unknown.join(', ')}: install ibverbs-providers`
    return { code: 'VERBS_PROVIDER', reason }
  }
  const reason = wanted === undefined ? 'there is no RDMA device' : `there is no RDMA device ${wanted}`
  return { code: 'VERBS_NO_DEVICE', reason }
}

function openDevice(library: VerbsLibrary, device: Pointer, name: string): ChosenDevice | NoDevice {
  // A program that starts others forks. Without the kernel's help the child would get pinned pages, and the device
  // would write to pages that this process has lost.
  if (library.ibv_is_fork_initialized() !== FORK_UNNEEDED) {
    return {
      code: 'VERBS_FORK',
      reason: 'the kernel does not copy pinned pages on fork; it must be 5.12 or later',
    }
  }
  const context = library.ibv_open_device(device)
  if (context === null) return reasonForClosed(library, name)
  const port = choosePort(library, context, name)
  if ('number' in port && !isIwarp(name)) return { context, port }
  const chosen = 'number' in port ? addManager(library, context, port) : port
  if (!('context' in chosen)) library.ibv_close_device(context)
  return chosen
}

/** An iWARP device connects by its connection manager, and has IP addresses. */
function addManager(library: VerbsLibrary, context: Pointer, port: Port): ChosenDevice | NoDevice {
  const manager = openManager(library, port.device)
  if (typeof manager !== 'string')
    return { context, port: { ...port, gid: manager.address, linkLayer: LINK_IWARP }, manager }
  return {
    code: 'VERBS_IWARP',
    reason: `${port.device} is iWARP, which needs the RDMA connection manager: ${manager}`,
  }
}

function isIwarp(device: string): boolean {
  return sysfs(device, 'node_type').includes(IWARP)
}

/**
 * Why a device cannot be opened. The library continues its search where it lacks permission, and then reports that there
 * is no device.
 */
function reasonForClosed(library: VerbsLibrary, device: string): NoDevice {
  const { message } = systemError(library.libc, 'ibv_open_device')
  const node = `/dev/infiniband/${basename(userDeviceOf(device))}`
  try {
    accessSync(node, constants.R_OK | constants.W_OK)
    return { code: 'VERBS_DEVICE', reason: `${device} cannot be opened: ${message}` }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return { code: 'VERBS_PERMISSION', reason: `${device} cannot be opened: ${node} ${code}` }
  }
}

function choosePort(library: VerbsLibrary, context: Pointer, device: string): Port | NoDevice {
  const wanted = numberFrom(PORT_VARIABLE)
  let refusal: NoDevice = { code: 'VERBS_PORT_DOWN', reason: `${device} has no port ${wanted ?? ''}` }
  for (const number of namesIn(`${device}/ports`)
    .map(Number)
    .sort((a, b) => a - b)) {
    if (wanted !== undefined && number !== wanted) continue
    const attributes = Buffer.alloc(PORT_SIZE)
    const errno = library.ibv_query_port(context, number, attributes)
    const state = attributes.readInt32LE(PORT_STATE)
    const mtu = attributes.readInt32LE(PORT_ACTIVE_MTU)
    const linkLayer = attributes.readUInt8(PORT_LINK_LAYER) || LINK_INFINIBAND
    if (errno !== 0 || mtu < MTU_MIN || mtu > MTU_MAX || linkLayer > LINK_ETHERNET) {
      refusal = {
        code: 'VERBS_ABI',
        reason: `${device} describes port ${number} in a way that is not known here`,
      }
    } else if (state !== PORT_ACTIVE) {
      refusal = { code: 'VERBS_PORT_DOWN', reason: `port ${number} of ${device} is down` }
    } else {
      const gid = chooseGid(library, context, device, number, linkLayer)
      if (gid !== undefined)
        return { device, number, ...gid, lid: attributes.readUInt16LE(PORT_LID), mtu, linkLayer }
      refusal = {
        code: 'VERBS_NO_GID',
        reason: `port ${number} of ${device} has no address that can be routed`,
      }
    }
  }
  return refusal
}

/** RoCE v2 over IPv4, then over IPv6, then over a link-local address; on InfiniBand the port's own. */
export function chooseGid(
  library: VerbsLibrary,
  context: Pointer,
  device: string,
  port: number,
  linkLayer: number,
): { gidIndex: number; gid: Buffer } | undefined {
  const readGid = (gidIndex: number): { gidIndex: number; gid: Buffer } | undefined => {
    const gid = Buffer.alloc(GID_SIZE)
    const isThere = library.ibv_query_gid(context, port, gidIndex, gid) === 0 && gid.some(byte => byte !== 0)
    return isThere ? { gidIndex, gid } : undefined
  }
  const wanted = numberFrom(GID_VARIABLE)
  if (wanted !== undefined) return readGid(wanted)
  if (linkLayer !== LINK_ETHERNET || isIwarp(device)) return readGid(0)
  return namesIn(`${device}/ports/${port}/gid_attrs/types`)
    .map(Number)
    .filter(index => sysfs(device, `ports/${port}/gid_attrs/types/${index}`).includes('RoCE v2'))
    .map(readGid)
    .filter(found => found !== undefined)
    .sort((a, b) => rank(a.gid) - rank(b.gid) || a.gidIndex - b.gidIndex)[0]
}

function rank(gid: Buffer): number {
  if (gid.subarray(0, MAPPED.length).equals(MAPPED)) return 0
  return gid.subarray(0, LINK_LOCAL.length).equals(LINK_LOCAL) ? 2 : 1
}

function numberFrom(variable: string): number | undefined {
  const text = process.env[variable]
  return text ? Number(text) : undefined
}

/** As the kernel writes it, in 16 digits. */
export function nodeGuidOf(device: string): string {
  return sysfs(device, 'node_guid').replaceAll(':', '')
}

export function portCountOf(device: string): number {
  return namesIn(`${device}/ports`).length
}

function namesIn(path: string): string[] {
  return entriesOf(`${SYSFS}/${path}`)
}

function sysfs(device: string, path: string): string {
  return read(`${SYSFS}/${device}/${path}`)
}
