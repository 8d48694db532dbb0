/**
 * All suites, in the order in which they run. What a suite imports at its top must be a dependency of the package; a
 * package that users may not have is imported when the suite runs, and named by `skip` if it is missing.
 */
import type { Suite } from './suite.ts'
import { ablation } from './suites/ablation.ts'
import { apps } from './suites/apps.ts'
import { connect } from './suites/connect.ts'
import { cpu } from './suites/cpu.ts'
import { datagrams } from './suites/datagrams.ts'
import { fanin } from './suites/fanin.ts'
import { idle } from './suites/idle.ts'
import { many } from './suites/many.ts'
import { memory } from './suites/memory.ts'
import { micro } from './suites/micro.ts'
import { oversubscribed } from './suites/oversubscribed.ts'
import { pingpong } from './suites/pingpong.ts'
import { plainPeers } from './suites/plain-peers.ts'
import { short } from './suites/short.ts'
import { stream } from './suites/stream.ts'
import { threads } from './suites/threads.ts'
import { warmup } from './suites/warmup.ts'

export const SUITES: readonly Suite[] = [
  pingpong,
  stream,
  connect,
  fanin,
  threads,
  many,
  idle,
  oversubscribed,
  plainPeers,
  warmup,
  short,
  datagrams,
  cpu,
  memory,
  apps,
  ablation,
  micro,
]
