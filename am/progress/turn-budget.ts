/**
 * Limits the work of one turn of the poller, over all channels: a turn stays short, whatever peers send and
 * however many they are. The rest follows in the next turn, after the timers and the I/O of the program.
 *
 * Messages differ, so there are three limits: bytes cost copies, a CONNECT makes a socket, and the program's work
 * on a message is known only afterwards. They are a number of bytes, a time for handling messages, and a number
 * of messages. That number is halved after a turn that took too long, and doubled after a turn that used it up
 * early.
 */
import { type Clock, realClock } from '../../nic/clock.ts'

/** Most messages of one channel in one turn. */
export const CHANNEL_MESSAGES_MAX = 256
/** Messages between two reads of the clock. */
const SLICE_MESSAGES = 16
/** Time after which a turn handles no further message: delivering to programs takes a few times as long. */
const HANDLE_MS = 1
/** After a turn that takes longer, the next one handles fewer messages. */
const TURN_MS = 3
const MESSAGES_MIN = 16
const MESSAGES_FIRST = 64
const MESSAGES_MAX = 2048
/** Most bytes of one turn: two full rings of sockets. */
const BYTES_MAX = 2 << 20

export class TurnBudget {
  /** What the turn may still handle. Its owner subtracts what it has handled. */
  messagesLeft = 0
  bytesLeft = 0
  private messagesMax = MESSAGES_FIRST
  private begunAtMs = 0
  private readonly clock: Clock

  constructor(clock: Clock = realClock) {
    this.clock = clock
  }

  begin(nowMs: number): void {
    this.begunAtMs = nowMs
    this.messagesLeft = this.messagesMax
    this.bytesLeft = BYTES_MAX
  }

  /** Messages to handle before the next read of the clock, of a channel that may handle `left` more; 0 ends the turn. */
  nextLimit(left: number): number {
    if (this.bytesLeft <= 0 || this.messagesLeft <= 0) return 0
    const isFirst = this.messagesLeft === this.messagesMax
    if (!isFirst && this.clock.now() - this.begunAtMs >= HANDLE_MS) return 0
    return Math.min(left, SLICE_MESSAGES, this.messagesLeft)
  }

  end(): void {
    const handled = this.messagesMax - this.messagesLeft
    if (handled < MESSAGES_MIN) return
    const tookMs = this.clock.now() - this.begunAtMs
    if (tookMs > TURN_MS) this.messagesMax = Math.max(MESSAGES_MIN, this.messagesMax >> 1)
    else if (this.messagesLeft <= 0) this.messagesMax = Math.min(MESSAGES_MAX, this.messagesMax << 1)
  }
}
