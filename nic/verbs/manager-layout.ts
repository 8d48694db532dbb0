/**
 * Structures of librdmacm as they lie in memory on a 64-bit little-endian machine: byte offsets, from rdma/rdma_cma.h.
 *
 *   rdma_event_channel  0 fd
 *   rdma_cm_id          0 verbs (its ibv_context)   8 channel   16 context   24 qp   32 own address (sockaddr, 128 bytes)
 *   rdma_cm_event       0 id   8 listen_id   16 event   20 status   24 rdma_conn_param
 *   rdma_conn_param     0 private_data   8 its length (u8)   9 responder_resources (u8)   10 initiator_depth (u8)
 *                       12 retry_count (u8)   13 rnr_retry_count (u8)   16 qp_num
 *   ibv_context         0 device
 */
export const EVENT_CHANNEL_FD = 0

export const ID_CONTEXT = 0
export const ID_OWN_ADDRESS = 32
export const CONTEXT_DEVICE = 0

export const EVENT_ID = 0
export const EVENT_TYPE = 16
export const EVENT_STATUS = 20
export const EVENT_PRIVATE_DATA = 24
export const EVENT_PRIVATE_LENGTH = 32

export const PARAMETERS_SIZE = 24
export const PARAMETERS_PRIVATE_DATA = 0
export const PARAMETERS_PRIVATE_LENGTH = 8
export const PARAMETERS_RESPONDER = 9
export const PARAMETERS_INITIATOR = 10
export const PARAMETERS_QP_NUMBER = 16

/** enum rdma_port_space. */
export const SPACE_TCP = 0x0106

/** enum rdma_cm_event_type. */
export const EVENT_ADDRESS_RESOLVED = 0
export const EVENT_ROUTE_RESOLVED = 2
export const EVENT_REQUEST = 4
export const EVENT_ESTABLISHED = 9
export const EVENT_DISCONNECTED = 10
/** Those by which a connection that is being made fails. */
export const EVENTS_FAILED: Readonly<Record<number, string>> = {
  1: 'its address cannot be resolved',
  3: 'there is no route to it',
  6: 'the connection failed',
  7: 'it cannot be reached',
  8: 'it rejects the connection',
}

/** RDMA reads under way each way, of every queue pair. */
export const READS_AT_ONCE = 4
