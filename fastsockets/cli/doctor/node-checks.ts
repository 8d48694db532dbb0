/** What the fast way needs of this Node and its packages. */
import { drivers } from '../../../nic/index.ts'
import { fastHandleClass } from '../../handle/fast-handle.ts'
import { DISABLE_VARIABLE, isDisabled } from '../../host/environment.ts'
import type { Check } from './check.ts'

const NODE_MAJOR_MIN = 20
const FAST_ARCHITECTURES: readonly string[] = ['x64', 'arm64']

export function nodeChecks(): Check[] {
  return [platform(), nodeVersion(), isSwitchedOn(), koffi(), nativeStream(), sharedMemory()]
}

function platform(): Check {
  const name = 'platform'
  const detail = `${process.platform} ${process.arch}`
  if (process.platform !== 'linux') {
    return { name, state: 'failed', detail, hint: 'the fast way needs Linux' }
  }
  if (!FAST_ARCHITECTURES.includes(process.arch)) {
    return { name, state: 'note', detail, hint: `tried on ${FAST_ARCHITECTURES.join(' and ')} only` }
  }
  return { name, state: 'ok', detail }
}

function nodeVersion(): Check {
  const name = 'Node.js'
  const detail = process.versions.node
  if (Number.parseInt(detail, 10) >= NODE_MAJOR_MIN) return { name, state: 'ok', detail }
  return { name, state: 'failed', detail, hint: `install Node.js ${NODE_MAJOR_MIN} or later` }
}

function isSwitchedOn(): Check {
  const name = 'switched on'
  if (!isDisabled()) return { name, state: 'ok', detail: `${DISABLE_VARIABLE} is not set` }
  return {
    name,
    state: 'failed',
    detail: `${DISABLE_VARIABLE}=${process.env[DISABLE_VARIABLE]}`,
    hint: `unset ${DISABLE_VARIABLE}, unless TCP is what you want`,
  }
}

function koffi(): Check {
  const name = 'koffi'
  const availability = shmAvailability()
  if (availability.usable) return { name, state: 'ok', detail: 'loads' }
  const { code, reason } = availability
  if (code === 'PLATFORM') return { name, state: 'note', detail: 'not tried on this platform' }
  if (code !== 'KOFFI') return { name, state: 'ok', detail: 'loads' }
  return {
    name,
    state: 'failed',
    detail: reason,
    hint: 'install the dependencies again, without --omit=optional: npm ci',
  }
}

function nativeStream(): Check {
  const name = 'native stream class'
  if (fastHandleClass() !== undefined) return { name, state: 'ok', detail: 'found in this Node' }
  return {
    name,
    state: 'failed',
    detail: 'not where this version of Fast Sockets looks for it',
    hint: 'use another Node.js release, or a later version of fastsockets',
  }
}

function sharedMemory(): Check {
  const name = 'sealed memory files'
  const availability = shmAvailability()
  if (availability.usable) return { name, state: 'ok', detail: 'can be made (memfd_create)' }
  const { code, reason } = availability
  if (code === 'PLATFORM' || code === 'KOFFI') return { name, state: 'note', detail: 'not tried' }
  return {
    name,
    state: 'failed',
    detail: reason,
    hint: 'look for a seccomp or container policy against memfd_create, and for a limit on open files',
  }
}

function shmAvailability() {
  return drivers.get('shm')?.availability() ?? { usable: false, code: 'MISSING', reason: 'no such driver' }
}
