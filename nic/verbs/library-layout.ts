/**
 * Structures of libibverbs as they lie in memory on a 64-bit little-endian machine: byte offsets, from infiniband/verbs.h.
 * The first 8 bytes of `ibv_qp`, `ibv_cq`, `ibv_srq`, `ibv_mr` and `ibv_comp_channel` point to their context. What the library
 * fills in is checked where it is made (verbs-adapter.ts, queue-pair.ts, shared-receives.ts, device-limits.ts): a field that is not where this page says is found out then.
 *
 *   ibv_context       0 device   8 table of 32 functions   264 cmd_fd   268 async_fd
 *   ibv_mr            0 context  8 pd  16 addr  24 length (u64)  32 handle  36 lkey  40 rkey
 *   ibv_cq            0 context  8 channel  16 cq_context  24 handle  28 cqe
 *   ibv_comp_channel  0 context  8 fd
 *   ibv_srq           0 context  8 srq_context  16 pd  24 handle
 *   ibv_qp            0 context  8 qp_context  16 pd  24 send_cq  32 recv_cq  40 srq  48 handle  52 qp_num  56 state  60 type
 *
 *   ibv_wc, 48 bytes        0 wr_id (u64)  8 status  12 opcode  16 vendor_err  20 byte_len  24 imm_data (network order)
 *                           28 qp_num  32 src_qp  36 wc_flags
 *   ibv_send_wr, 128 bytes  0 wr_id (u64)  8 next  16 sg_list  24 num_sge  28 opcode  32 send_flags  36 imm_data
 *                           40 remote_addr (u64)  48 rkey
 *   ibv_recv_wr, 32 bytes   0 wr_id (u64)  8 next  16 sg_list  24 num_sge
 *   ibv_sge, 16 bytes       0 addr (u64)  8 length  12 lkey
 */
export const CONTEXT_FUNCTIONS = 8
export const CONTEXT_COMMAND_FD = 264
export const CONTEXT_ASYNC_FD = 268
/** Entries of the table of functions. */
export const FUNCTION_POLL_CQ = 11
export const FUNCTION_REQ_NOTIFY_CQ = 12
export const FUNCTION_POST_SRQ_RECV = 20
export const FUNCTION_POST_SEND = 25
export const FUNCTION_POST_RECV = 26

export const MR_ADDRESS = 16
export const MR_LENGTH = 24
export const MR_LKEY = 36
export const MR_RKEY = 40

export const CQ_CHANNEL = 8
export const CHANNEL_FD = 8

export const SRQ_PD = 16

export const QP_PD = 16
export const QP_SEND_CQ = 24
export const QP_SRQ = 40
export const QP_NUMBER = 52
export const QP_TYPE = 60

export const WC_SIZE = 48
export const WC_WORDS = WC_SIZE / 4
export const WC_ID_LOW_WORD = 0 / 4
export const WC_ID_HIGH_WORD = 4 / 4
export const WC_STATUS_WORD = 8 / 4
export const WC_IMM_WORD = 24 / 4
export const WC_QP_NUMBER_WORD = 28 / 4

export const SEND_WR_SIZE = 128
export const SEND_ID_LOW_WORD = 0 / 4
export const SEND_ID_HIGH_WORD = 4 / 4
export const SEND_NEXT_WORD = 8 / 4
export const SEND_SGE = 16
export const SEND_SGE_COUNT_WORD = 24 / 4
export const SEND_OPCODE_WORD = 28 / 4
export const SEND_FLAGS_WORD = 32 / 4
export const SEND_IMM_WORD = 36 / 4
export const SEND_REMOTE_LOW_WORD = 40 / 4
export const SEND_REMOTE_HIGH_WORD = 44 / 4
export const SEND_RKEY_WORD = 48 / 4

export const RECV_WR_SIZE = 32
export const RECV_ID_LOW_WORD = 0 / 4
export const RECV_ID_HIGH_WORD = 4 / 4
export const RECV_NEXT = 8
export const RECV_SGE = 16
export const RECV_SGE_COUNT = 24

export const SGE_SIZE = 16
export const SGE_LOW_WORD = 0 / 4
export const SGE_HIGH_WORD = 4 / 4
export const SGE_LENGTH_WORD = 8 / 4
export const SGE_LKEY_WORD = 12 / 4

/** struct ibv_qp_init_attr: 64 bytes; the library writes the real limits back. */
export const INIT_SIZE = 64
export const INIT_SEND_CQ = 8
export const INIT_RECV_CQ = 16
export const INIT_SRQ = 24
export const INIT_SEND_COUNT = 32
export const INIT_RECV_COUNT = 36
export const INIT_SEND_SGES = 40
export const INIT_RECV_SGES = 44
export const INIT_INLINE = 48
export const INIT_TYPE = 52
export const TYPE_RC = 2

/** struct ibv_srq_init_attr: 0 srq_context  8 max_wr  12 max_sge  16 srq_limit. */
export const SRQ_INIT_SIZE = 24
export const SRQ_INIT_MAX_WR = 8
export const SRQ_INIT_MAX_SGE = 12

/** struct ibv_device_attr: 232 bytes; the number of ports is the last field. */
export const DEVICE_SIZE = 232
export const DEVICE_GUID = 64
export const DEVICE_MAX_CQE = 132
export const DEVICE_MAX_SRQ = 212
export const DEVICE_MAX_SRQ_WR = 216
export const DEVICE_PORT_COUNT = 227
export const GUID_SIZE = 8

/** struct ibv_qp_attr: 144 bytes, of which ibv_ah_attr are 32 from byte 56 on. */
export const ATTR_SIZE = 144
export const ATTR_STATE = 0
export const ATTR_PATH_MTU = 8
export const ATTR_RQ_PSN = 20
export const ATTR_SQ_PSN = 24
export const ATTR_DEST_QP = 28
export const ATTR_ACCESS = 32
export const ATTR_AH = 56
/** Within ibv_ah_attr: the peer's GID, then which of ours, the hops, the LID, whether there is a GID, the port. */
export const AH_GID = 0
export const AH_GID_INDEX = 20
export const AH_HOP_LIMIT = 21
export const AH_LID = 24
export const AH_IS_GLOBAL = 29
export const AH_PORT = 30
export const ATTR_MAX_RD_ATOMIC = 126
export const ATTR_MAX_DEST_RD_ATOMIC = 127
export const ATTR_MIN_RNR_TIMER = 128
export const ATTR_PORT = 129
export const ATTR_TIMEOUT = 130
export const ATTR_RETRY_COUNT = 131
export const ATTR_RNR_RETRY = 132

export const STATE_INIT = 1
export const STATE_RTR = 2
export const STATE_RTS = 3
export const STATE_ERROR = 6

/** Which fields of ibv_qp_attr each step sets: enum ibv_qp_attr_mask. */
export const MASK_STATE = 1
export const MASK_INIT = MASK_STATE | (1 << 3) | (1 << 4) | (1 << 5)
/** For a device whose connection manager sets the other fields. */
export const MASK_INIT_MANAGED = MASK_STATE | (1 << 3)
export const MASK_RTR = MASK_STATE | (1 << 7) | (1 << 8) | (1 << 12) | (1 << 15) | (1 << 17) | (1 << 20)
export const MASK_RTS = MASK_STATE | (1 << 9) | (1 << 10) | (1 << 11) | (1 << 13) | (1 << 16)

/** struct ibv_port_attr, as far as every version of the library fills it. */
export const PORT_SIZE = 64
export const PORT_STATE = 0
export const PORT_ACTIVE_MTU = 8
export const PORT_LID = 34
export const PORT_LINK_LAYER = 46
export const PORT_ACTIVE = 4
export const LINK_INFINIBAND = 1
export const LINK_ETHERNET = 2
/** enum ibv_mtu: 1 is 256 bytes, 5 is 4096. */
export const MTU_MIN = 1
export const MTU_MAX = 5

export const GID_SIZE = 16

/**
 * struct ibv_async_event, 16 bytes: 0 the object (for a port its number, as an int), 8 the event: enum ibv_event_type.
 */
export const ASYNC_SIZE = 16
export const ASYNC_PORT = 0
export const ASYNC_TYPE = 8
export const ASYNC_QUEUE_ERROR = 0
export const ASYNC_DEVICE_FATAL = 8
export const ASYNC_PORT_ERROR = 10
export const ASYNC_SHARED_QUEUE_ERROR = 14
export const ASYNC_GID_CHANGE = 18

export const ACCESS_LOCAL_WRITE = 1
export const ACCESS_REMOTE_WRITE = 2
export const ACCESS_REMOTE_READ = 4

export const OPCODE_RDMA_WRITE = 0
export const OPCODE_RDMA_WRITE_WITH_IMM = 1
export const OPCODE_SEND = 2
export const OPCODE_RDMA_READ = 4

export const SEND_SIGNALED = 2
export const SEND_INLINE = 8

export const WC_SUCCESS = 0
export const WC_FLUSHED = 5
export const WC_RETRY_EXCEEDED = 12
export const WC_RNR_RETRY_EXCEEDED = 13
