import type { Kind } from '../kind.ts'
import { amMessages } from './am-messages.ts'
import { bootstrapBytes } from './bootstrap-bytes.ts'
import { datagrams } from './datagrams.ts'
import { doubleFetch } from './double-fetch.ts'
import { ethernetFrames } from './ethernet-frames.ts'
import { handoff } from './handoff.ts'
import { keys } from './keys.ts'
import { nameService } from './name-service.ts'
import { names } from './names.ts'
import { policyFile } from './policy-file.ts'
import { rendezvousLines } from './rendezvous.ts'
import { ringWords } from './ring-words.ts'
import { rpcMessages } from './rpc-messages.ts'
import { socketMessages } from './socket-messages.ts'
import { squatters } from './squatters.ts'
import { statusPages } from './status-page.ts'
import { tcpFrames } from './tcp-frames.ts'

export const KINDS: readonly Kind[] = [
  bootstrapBytes,
  squatters,
  handoff,
  keys,
  ringWords,
  doubleFetch,
  tcpFrames,
  ethernetFrames,
  amMessages,
  rpcMessages,
  socketMessages,
  datagrams,
  rendezvousLines,
  names,
  nameService,
  statusPages,
  policyFile,
]
