/** Linux numbers (the same on x64 and arm64) that Node does not export, from the kernel's uapi headers. */
export const PROT_READ = 1
export const PROT_WRITE = 2
export const MAP_SHARED = 0x01
export const MAP_PRIVATE = 0x02
export const MAP_FIXED = 0x10
export const MAP_ANONYMOUS = 0x20
export const MAP_NORESERVE = 0x4000
export const MAP_FIXED_NOREPLACE = 0x100000

/** Frees pages of shared memory; afterwards they read as zeros. */
export const MADV_REMOVE = 9

export const MFD_CLOEXEC = 1
export const MFD_ALLOW_SEALING = 2
export const F_GETFL = 3
export const O_ACCMODE = 3
export const O_RDWR = 2
/** open(2): a descriptor of the file's place only. */
export const O_PATH = 0o10000000
export const LOCK_EX = 2
export const LOCK_NB = 4
export const F_DUPFD_CLOEXEC = 1030
export const F_ADD_SEALS = 1033
export const F_GET_SEALS = 1034
export const F_SEAL_SEAL = 1
export const F_SEAL_SHRINK = 2
export const F_SEAL_GROW = 4
export const F_SEAL_WRITE = 8
export const F_SEAL_FUTURE_WRITE = 16
export const TMPFS_MAGIC = 0x01021994

export const AF_UNIX = 1
export const AF_NETLINK = 16
export const AF_PACKET = 17
export const NETLINK_SOCK_DIAG = 4
export const AF_INET = 2
export const AF_INET6 = 10
export const SOCK_STREAM = 1
export const SOCK_DGRAM = 2
export const SOCK_RAW = 3
export const SOCK_NONBLOCK = 0o4000
export const SOCK_CLOEXEC = 0o2000000
export const SOL_SOCKET = 1
export const SO_TYPE = 3
export const SO_KEEPALIVE = 9
export const SO_REUSEPORT = 15
export const SO_PEERCRED = 17
export const SO_ATTACH_FILTER = 26
export const SO_ACCEPTCONN = 30
export const SO_DOMAIN = 39
export const SO_LOCK_FILTER = 44
/** Since Linux 6.5. */
export const SO_PEERPIDFD = 77
/** Since Linux 6.16. */
export const SO_PASSRIGHTS = 83
/** packet(7) */
export const SOL_PACKET = 263
export const PACKET_RX_RING = 5
export const PACKET_STATISTICS = 6
export const PACKET_VERSION = 10
export const PACKET_QDISC_BYPASS = 20
export const PACKET_IGNORE_OUTGOING = 23
export const TPACKET_V2 = 1
export const IPPROTO_TCP = 6
export const IPPROTO_UDP = 17
export const TCP_KEEPIDLE = 4
export const TCP_KEEPINTVL = 5
export const TCP_USER_TIMEOUT = 18
export const IPPROTO_IPV6 = 41
export const IPV6_V6ONLY = 26
export const SCM_RIGHTS = 1
export const SCM_PIDFD = 4
export const SHUT_WR = 1
export const SHUT_RDWR = 2
export const POLLIN = 1
export const POLLRDHUP = 0x2000
/** Bytes in the send queue that the peer's kernel has not acknowledged. */
export const SIOCOUTQ = 0x5411
/** netdevice(7) */
export const SIOCGIFFLAGS = 0x8913
export const SIOCGIFMTU = 0x8921
export const SIOCGIFHWADDR = 0x8927
export const SIOCGIFINDEX = 0x8933
export const IFF_UP = 1
export const IFF_RUNNING = 0x40
export const ARPHRD_ETHER = 1
export const ARPHRD_LOOPBACK = 772
export const EPOLL_CLOEXEC = 0o2000000
export const EPOLL_CTL_ADD = 1
export const EPOLL_CTL_DEL = 2
export const EPOLLIN = 1
export const MSG_DONTWAIT = 0x40
export const MSG_MORE = 0x8000
export const MSG_NOSIGNAL = 0x4000
export const MSG_CMSG_CLOEXEC = 0x40000000

export const AT_EMPTY_PATH = 0x1000
export const STATX_UID = 0x8
export const STATX_INO = 0x100

export const EPERM = 1
export const EINTR = 4
export const ENXIO = 6
export const EAGAIN = 11
export const ENODEV = 19
export const EPIPE = 32
export const EPROTO = 71
export const EMSGSIZE = 90
export const ENETUNREACH = 101
export const ECONNRESET = 104
export const ENOBUFS = 105
export const ETIMEDOUT = 110
export const ECONNREFUSED = 111
export const EHOSTDOWN = 112
export const EHOSTUNREACH = 113
