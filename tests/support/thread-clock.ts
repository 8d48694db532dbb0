/** What the calling thread has used of the processor, to the nanosecond: clock_gettime(3). */
import koffi from 'koffi'

const CLOCK_THREAD_CPUTIME_ID = 3
const getTime = koffi.load(null).func('int clock_gettime(int clock, void *time)')
/** struct timespec. */
const time = Buffer.alloc(16)

export function threadCpuMs(): number {
  if (getTime(CLOCK_THREAD_CPUTIME_ID, time) !== 0) throw new Error('there is no clock of the thread')
  return 1000 * Number(time.readBigInt64LE(0)) + Number(time.readBigInt64LE(8)) / 1e6
}
