/** A preload: from now on the kernel refuses memfd_create(2) to this process with EPERM, as seccomp profiles of containers do. */
import { constants } from 'node:os'
import { allow, applyFilter, load, NUMBER, refuse, unless } from '../../support/seccomp.ts'

const MEMFD_CREATE: Partial<Record<NodeJS.Architecture, number>> = { x64: 319, arm64: 279 }

applyFilter([
  load(NUMBER),
  unless(MEMFD_CREATE[process.arch] ?? 0, 1),
  refuse(constants.errno.EPERM),
  allow(),
])
