/**
 * The C library, bound through koffi, which only this file loads. All other files call `loadLibc()`. Without a C
 * library (another platform, koffi missing) it returns a reason, so that importing this package never throws.
 */
import { createRequire } from 'node:module'
import { isMainThread } from 'node:worker_threads'
import { NicError } from '../errors.ts'
import { clearInterval, setInterval } from '../real-time.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import { bindIoPhase, type OpenIoPhase } from './uv-phase.ts'

export type Koffi = typeof import('koffi', { with: { 'resolution-mode': 'import' }})

/** A descriptor that the event loop watches, until `stop` or `close`. */
export interface PollHandle {
  start(options: { readable: true }, listener: () => void): void
  stop(): void
  ref(): void
  unref(): void
  close(): void
}

/** Interval of looks in a worker: koffi's handle would abort the process if it rang in a worker that is being stopped. */
const WORKER_LOOK_MS = 1

class TimedHandle implements PollHandle {
  #timer: NodeJS.Timeout | undefined

  constructor(listener: () => void) {
    this.start({ readable: true }, listener)
    this.unref()
  }

  start(_options: object, listener: () => void): void {
    this.#timer ??= setInterval(listener, WORKER_LOOK_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  ref(): void {
    this.#timer?.ref()
  }

  unref(): void {
    this.#timer?.unref()
  }

  close(): void {
    this.stop()
  }
}

export interface Libc {
  mmap(
    address: bigint | null,
    length: number,
    prot: number,
    flags: number,
    fd: number,
    offset: number,
  ): bigint
  munmap(address: bigint, length: number): number
  memfd_create(name: string, flags: number): number
  ftruncate(fd: number, length: number): number
  fcntl(fd: number, command: number, argument: number): number
  close(fd: number): number
  flock(fd: number, operation: number): number
  sched_yield(): number
  /** Undefined in C libraries other than glibc. */
  mallopt: ((parameter: number, value: number) => number) | undefined
  socket(domain: number, type: number, protocol: number): number
  bind(fd: number, address: Uint8Array, length: number): number
  /** `length` is an int of 4 bytes. Before the call: the size of `address`. After the call: that of the name. */
  getpeername(fd: number, address: Uint8Array, length: Uint8Array): number
  getsockname(fd: number, address: Uint8Array, length: Uint8Array): number
  socketpair(domain: number, type: number, protocol: number, descriptors: Int32Array): number
  connect(fd: number, address: Uint8Array, length: number): number
  send(fd: number, from: Uint8Array, length: number, flags: number): number
  recv(fd: number, into: Uint8Array, length: number, flags: number): number
  sendmsg(fd: number, message: Uint8Array, flags: number): number
  recvmsg(fd: number, message: Uint8Array, flags: number): number
  shutdown(fd: number, how: number): number
  getsockopt(fd: number, level: number, name: number, value: Uint8Array, length: Uint8Array): number
  setsockopt(fd: number, level: number, name: number, value: Uint8Array, length: number): number
  fstatfs(fd: number, into: Uint8Array): number
  statx(folder: number, path: string, flags: number, mask: number, into: Uint8Array): number
  pread(fd: number, into: Uint8Array, length: number, offset: bigint): number
  madvise(address: bigint, length: number, advice: number): number
  poll(descriptors: Uint8Array, count: number, timeoutMs: number): number
  epoll_create1(flags: number): number
  epoll_ctl(epoll: number, operation: number, fd: number, event: Uint8Array): number
  epoll_wait(epoll: number, events: Uint8Array, eventsMax: number, timeoutMs: number): number
  ioctl(fd: number, request: number, argument: Uint8Array): number
  process_vm_readv(
    pid: number,
    local: Uint8Array,
    localCount: number,
    remote: Uint8Array,
    remoteCount: number,
    flags: number,
  ): number
  process_vm_writev(
    pid: number,
    local: Uint8Array,
    localCount: number,
    remote: Uint8Array,
    remoteCount: number,
    flags: number,
  ): number
  errno(): number
  /** Name of an errno value, such as `EMFILE`. */
  errnoName(errno: number): string
  /** Address of the memory behind a buffer; the caller keeps the buffer alive. */
  address(buffer: Uint8Array): bigint
  openIoPhase: OpenIoPhase | undefined
  /**
   * Calls `listener` from the event loop while `fd` is readable; in a worker every millisecond, readable or not. Does not keep the
   * loop alive until `ref`.
   */
  watch(fd: number, listener: () => void): PollHandle
  /** An ArrayBuffer over memory outside V8. Collecting the ArrayBuffer does not free the memory. */
  view(address: bigint, length: number): ArrayBuffer
}

export type LibcResult =
  | { readonly libc: Libc; readonly code?: undefined; readonly reason?: undefined }
  | { readonly libc?: undefined; readonly code: 'PLATFORM' | 'KOFFI'; readonly reason: string }

const PROTOTYPES = {
  mmap: 'void *mmap(void *addr, size_t len, int prot, int flags, int fd, int64_t off)',
  munmap: 'int munmap(void *addr, size_t len)',
  memfd_create: 'int memfd_create(const char *name, unsigned int flags)',
  ftruncate: 'int ftruncate(int fd, int64_t len)',
  fcntl: 'int fcntl(int fd, int cmd, int arg)',
  close: 'int close(int fd)',
  flock: 'int flock(int fd, int operation)',
  sched_yield: 'int sched_yield()',
  socket: 'int socket(int domain, int type, int protocol)',
  bind: 'int bind(int fd, const void *addr, unsigned int len)',
  getpeername: 'int getpeername(int fd, void *addr, void *len)',
  getsockname: 'int getsockname(int fd, void *addr, void *len)',
  socketpair: 'int socketpair(int domain, int type, int protocol, void *sv)',
  connect: 'int connect(int fd, const void *addr, unsigned int len)',
  send: 'int64_t send(int fd, const void *buf, size_t n, int flags)',
  recv: 'int64_t recv(int fd, void *buf, size_t n, int flags)',
  sendmsg: 'int64_t sendmsg(int fd, const void *msg, int flags)',
  recvmsg: 'int64_t recvmsg(int fd, void *msg, int flags)',
  shutdown: 'int shutdown(int fd, int how)',
  getsockopt: 'int getsockopt(int fd, int level, int name, void *value, void *len)',
  setsockopt: 'int setsockopt(int fd, int level, int name, const void *value, unsigned int len)',
  fstatfs: 'int fstatfs(int fd, void *buf)',
  statx: 'int statx(int dirfd, const char *path, int flags, unsigned int mask, void *buf)',
  pread: 'int64_t pread(int fd, void *buf, size_t n, int64_t off)',
  madvise: 'int madvise(void *addr, size_t n, int advice)',
  poll: 'int poll(void *fds, unsigned long nfds, int timeout)',
  epoll_create1: 'int epoll_create1(int flags)',
  epoll_ctl: 'int epoll_ctl(int epfd, int op, int fd, void *event)',
  epoll_wait: 'int epoll_wait(int epfd, void *events, int maxevents, int timeout)',
  ioctl: 'int ioctl(int fd, unsigned long request, void *argument)',
  process_vm_readv:
    'int64_t process_vm_readv(int pid, const void *l, unsigned long lc, const void *r, unsigned long rc, unsigned long fl)',
  process_vm_writev:
    'int64_t process_vm_writev(int pid, const void *l, unsigned long lc, const void *r, unsigned long rc, unsigned long fl)',
} as const

let result: LibcResult | undefined

export function loadLibc(): LibcResult {
  result ??= undisturbed(load)
  return result
}

/** Throws `ERR_NIC_UNAVAILABLE` with the reason if there is no C library. */
export function requireLibc(): Libc {
  const { libc, reason } = loadLibc()
  if (libc === undefined) throw new NicError('ERR_NIC_UNAVAILABLE', reason)
  return libc
}

export function systemError(libc: Libc, syscall: string): NicError {
  const errno = libc.errno()
  return new NicError('ERR_NIC_SYSTEM', `${syscall} ${libc.errnoName(errno)}`, { syscall, errno })
}

function load(): LibcResult {
  if (process.platform !== 'linux') {
    return { code: 'PLATFORM', reason: `the fast way needs Linux; this is ${process.platform}` }
  }
  try {
    return { libc: bindLibc(loadKoffi()) }
  } catch (error) {
    return { code: 'KOFFI', reason: `koffi cannot be used: ${(error as Error).message.split('\n')[0]}` }
  }
}

/**
 * For drivers that bind another library. Throws if koffi cannot be loaded. The caller wraps the call in
 * `undisturbed`.
 */
export function loadKoffi(): Koffi {
  return createRequire(import.meta.url)('koffi') as Koffi
}

function bindLibc(koffi: Koffi): Libc {
  const library = koffi.load(null)
  const functions = Object.fromEntries(
    Object.entries(PROTOTYPES).map(([name, prototype]) => [name, library.func(prototype)]),
  )
  const names = new Map(Object.entries(koffi.os.errno).map(([name, value]) => [value as number, name]))
  return {
    ...(functions as unknown as Omit<
      Libc,
      'mallopt' | 'openIoPhase' | 'errno' | 'errnoName' | 'address' | 'view' | 'watch'
    >),
    mallopt: findOptional(() => library.func('int mallopt(int parameter, int value)')),
    openIoPhase: findOptional(() => bindIoPhase(koffi, library)),
    errno: () => koffi.errno() as number,
    errnoName: errno => names.get(errno) ?? `errno ${errno}`,
    address: buffer => BigInt(koffi.address(buffer) as unknown as bigint),
    watch: (fd, listener) => {
      if (!isMainThread) return new TimedHandle(listener)
      const handle = koffi.node.poll(fd, { readable: true }, listener) as unknown as PollHandle
      handle.unref()
      return handle
    },
    view: (address, length) => koffi.view(address as never, length) as ArrayBuffer,
  }
}

function findOptional<T>(find: () => T): T | undefined {
  try {
    return find()
  } catch {
    return undefined
  }
}
