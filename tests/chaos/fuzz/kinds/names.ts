/** Names, cursors and records that come from the name service or go there, and names of endpoints. */
import { decodeName, encodeName, newEndpointName } from '../../../../am/rendezvous/endpoint-name.ts'
import { kindOf, NAME_LENGTH_MAX, parseInetName } from '../../../../nameservice/index.ts'
import { isPrefix } from '../../../../nameservice/name.ts'
import { isRecord } from '../../../../nameservice/record.ts'
import { formatCursor, parseCursor } from '../../../../nameservice/store/change-log.ts'
import { EtcdKeys } from '../../../../nameservice/store/etcd-keys.ts'
import type { Attack, Kind } from '../kind.ts'
import { spoilText } from '../spoil.ts'

const RECORD = {
  kind: 'endpoint',
  endpoint: 'e',
  host: '',
  pid: 1,
  uid: 1,
  drivers: [{ name: 'shm', address: 'QUI=' }],
  tag: '0123456789abcdef',
  version: 1,
  labels: { a: 'b' },
}

export const names: Kind = {
  name: 'names',
  what: 'names of endpoints and listeners, prefixes, cursors, records, keys of etcd',
  reaches: ['endpoint name', 'inet name', 'published name', 'prefix', 'cursor', 'record', 'key of etcd'],
  open() {
    const keys = new EtcdKeys('/fuzz')
    const goods = [
      encodeName(newEndpointName()),
      'inet:tcp:10.0.0.7:80',
      'inet:tcp:fe80::1%eth0:65535',
      'services/printer',
      formatCursor({ epoch: '0123456789ab', revision: 7, part: 3 }),
      JSON.stringify(RECORD),
      JSON.stringify(['uid:1', '', JSON.stringify(RECORD)]),
    ] as const
    return {
      attack({ random, inputs, victim, count, wrong }: Attack) {
        for (let i = 0; i < inputs; i++) {
          const text = spoilText(random, random.pick(goods))
          victim(() => {
            if (decodeName(text) !== undefined) count('endpoint name')
            if (parseInetName(text) !== undefined) count('inet name')
            const kind = kindOf(text)
            if (kind !== undefined) count('published name')
            if (kind !== undefined && text.length > NAME_LENGTH_MAX)
              wrong(`a name of ${text.length} characters`)
            if (kind !== undefined && /[^!-~]/.test(text)) wrong(`a name with ${JSON.stringify(text)}`)
            if (isPrefix(text)) count('prefix')
            if (parseCursor(text) !== undefined) count('cursor')
            if (isRecord(parsed(text))) count('record')
            const change = { key: keys.name('services/printer'), value: text, revision: 1, lease: 1n }
            if (keys.parse(change).name !== undefined) count('key of etcd')
            keys.parse({ ...change, key: `${keys.prefix}${text}` })
          })
        }
      },
      honest() {
        const name = encodeName(newEndpointName())
        if (decodeName(name) === undefined || kindOf('services/printer') !== 'endpoint') throw new Error(name)
      },
    }
  },
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
