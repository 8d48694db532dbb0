/** Properties of the machine that limit speed or reach; none prevents the fast way. */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { reasonAgainstFolder, rendezvousFolder } from '../../../nic/index.ts'
import { allowsPeerMemory } from '../../policy/own-policy.ts'
import type { Check } from './check.ts'

/** Below this, a server of many relinked clients may run out: each client process takes a few descriptors. */
const OPEN_FILES_WANTED = 4096
const WITHOUT_FOLDER = 'connections to other containers use TCP (docs/guide/containers.md)'
const READ_ONLY = ': clients here are fast, and no other container finds the listeners here'
const PTRACE_SCOPES = ['any process of this user', 'only ancestors', 'only administrators', 'no process']

export function machineChecks(): Check[] {
  return [openFiles(), lockedMemory(), cores(), zcopyWithinHost(), folderOfContainers()]
}

function openFiles(): Check {
  const name = 'open files'
  const [, soft, hard] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(readProc('self/limits') ?? '') ?? []
  if (soft === undefined || hard === undefined) return { name, state: 'note', detail: 'limit not known' }
  const detail = `limit ${soft} (may be raised to ${hard})`
  if (soft === 'unlimited' || Number(soft) >= OPEN_FILES_WANTED) return { name, state: 'ok', detail }
  return {
    name,
    state: 'note',
    detail,
    hint: `servers of many clients want more: ulimit -n ${OPEN_FILES_WANTED}`,
  }
}

/** Shared memory needs none; an RDMA device pins the memory that it reads and writes. */
function lockedMemory(): Check {
  const name = 'locked memory'
  const [, soft, hard] = /^Max locked memory\s+(\S+)\s+(\S+)/m.exec(readProc('self/limits') ?? '') ?? []
  if (soft === undefined || hard === undefined) return { name, state: 'note', detail: 'limit not known' }
  return {
    name,
    state: 'ok',
    detail: `limit ${soft} bytes (may be raised to ${hard}); shared memory needs none`,
  }
}

function cores(): Check {
  const name = 'cores'
  const count = availableParallelism()
  if (count > 1) return { name, state: 'ok', detail: String(count) }
  const hint = 'two programs that take turns on one core gain less: round trips take as long as with TCP'
  return { name, state: 'note', detail: '1', hint }
}

/** Containers of this host find each other in a folder that they share. */
function folderOfContainers(): Check {
  const name = 'rendezvous folder'
  const missing = reasonAgainstFolder(false)
  if (missing !== undefined) return { name, state: 'ok', detail: `${missing}: ${WITHOUT_FOLDER}` }
  return {
    name,
    state: 'ok',
    detail: reasonAgainstFolder(true)?.concat(READ_ONLY) ?? `${rendezvousFolder()}`,
  }
}

/** Large writes can be read out of the other process, if both programs ask for it and the kernel allows it. */
function zcopyWithinHost(): Check {
  const name = 'zcopy within this host'
  if (!allowsPeerMemory())
    return { name, state: 'ok', detail: 'off: no other process reads our memory (policy key zcopy)' }
  const scope = Number(readProc('sys/kernel/yama/ptrace_scope') ?? 0)
  if (scope === 0) return { name, state: 'ok', detail: 'on: the kernel does not restrict it' }
  const detail = `on, and restricted: yama/ptrace_scope ${scope}, ${PTRACE_SCOPES[scope] ?? 'not known'}`
  const hint = 'large writes are copied in messages; to have them read: sysctl kernel.yama.ptrace_scope=0'
  return { name, state: 'note', detail, hint }
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, 'utf8').trim()
  } catch {
    return undefined
  }
}
