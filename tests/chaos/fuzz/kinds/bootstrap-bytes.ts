/** Greetings, hellos and answers, as bytes. */
import { strictEqual } from 'node:assert'
import {
  ANSWER_MAGIC,
  answerLength,
  decodeAnswer,
  decodeIntroduction,
  encodeAnswer,
  encodeIntroduction,
  GREETING_MAGIC,
  HELLO_MAGIC,
  INTRODUCTION_SIZE,
  type Introduction,
  mayBe,
  NO_ID,
  REFUSAL,
  VERSION,
  versionOf,
} from '../../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { Peers } from '../../../../fastsockets/connect/peers.ts'
import type { Attack, Kind } from '../kind.ts'
import { spoil } from '../spoil.ts'

const BLOB_SIZE = 40

/** Of another host: nothing that is right but for this is to cost an offer. */
export function introduction(bytes: (length: number) => Buffer, door = NO_ID): Introduction {
  return {
    version: VERSION,
    port: 80,
    isShared: false,
    isRequired: false,
    endpointId: bytes(16),
    hostIdentity: Buffer.alloc(16),
    uid: process.geteuid?.() ?? 0,
    pid: process.pid,
    door,
    listenerId: NO_ID,
  }
}

export const bootstrapBytes: Kind = {
  name: 'bootstrap-bytes',
  what: 'greetings, hellos and answers of the bootstrap',
  reaches: ['greeting', 'hello', 'answer'],
  open() {
    const peers = new Peers(
      () => REFUSAL.NOT_LISTENING,
      () => {
        throw new Error('no peer is dialled')
      },
    )
    return {
      attack({ random, inputs, victim, count, wrong }: Attack) {
        const hello = introduction(length => random.bytes(length))
        const goods = [
          encodeIntroduction(GREETING_MAGIC, hello),
          encodeIntroduction(HELLO_MAGIC, hello),
          encodeAnswer({ result: 0, driver: 'shm', blob: random.bytes(BLOB_SIZE) }),
        ] as const
        const magics = [GREETING_MAGIC, HELLO_MAGIC, ANSWER_MAGIC] as const
        for (let i = 0; i < inputs; i++) {
          const which = i % 3
          const bytes = spoil(random, goods[which] as Buffer)
          victim(() => {
            versionOf(bytes)
            if (!mayBe(magics[which] as Buffer, bytes)) return
            if (which === 2) {
              const length = answerLength(bytes)
              if (length === bytes.length && length > 0 && decodeAnswer(bytes) !== undefined) count('answer')
            } else if (bytes.length === INTRODUCTION_SIZE) {
              const decoded = decodeIntroduction(magics[which] as Buffer, bytes)
              if (decoded === undefined) return
              if (which === 0) count('greeting')
              else if ('refusal' in peers.answer(decoded, undefined)) count('hello')
              else wrong('an offer to another host')
            }
          })
        }
      },
      honest() {
        const hello = introduction(length => Buffer.alloc(length, 7))
        strictEqual(decodeIntroduction(HELLO_MAGIC, encodeIntroduction(HELLO_MAGIC, hello))?.port, 80)
      },
    }
  },
}
