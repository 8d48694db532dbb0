/**
 * Why a connection is on TCP. Every connection that is not fast has exactly one of these on record; `transportOf`
 * shows it. Codes are stable; texts are for people.
 */
import { shownText } from '../nic/shown-text.ts'

export const FALLBACK_REASONS = {
  DISABLED: 'FASTSOCKETS_DISABLE is set',
  POLICY: 'the policy keeps it on TCP',
  POLICY_INVALID: 'the policy cannot be used',
  PLATFORM: 'the fast way needs Linux',
  KOFFI: 'the koffi package cannot be loaded',
  NODE_INTERNALS: 'this Node has no native stream class in the place where we look for it',
  DRIVER: 'shared memory cannot be used on this machine',
  NOT_RELINKED: 'no Fast Sockets listener answered on the hashed port',
  STRANGER: 'what answers in place of a Fast Sockets listener does not speak its protocol',
  SILENT: 'the server seems to be relinked, but no greeting came in time',
  VERSION: 'the server speaks another version of the protocol',
  REMOTE_HOST: 'the address is not one of this host, and it may not be asked for the fast way',
  STARTED_ON_TCP: 'it starts on TCP, and becomes fast once that pays',
  OTHER_HOST: 'the server runs under another kernel',
  NO_RENDEZVOUS: 'the server is in another network namespace or host, and no rendezvous folder leads to it',
  OTHER_USER: 'the server runs as another user',
  NOT_LISTENING: 'no process listens there, or no longer by the fast way',
  HANDSHAKE: 'the handshake with the server was not completed',
  LOCAL_ADDRESS: 'the program chose the local address or port itself',
  ADDRESS: 'this form of address is left to TCP',
  PIPE: 'no socket of this host that may be written to is at the unix path',
  OWN_HANDLE: 'the socket came with a handle or descriptor of its own',
  CLUSTER: 'a raw server in a worker of a cluster has no listener of its own',
  PORTS_TAKEN: 'all places where clients would ask for the listener were taken when it began to listen',
  LIMIT: 'a limit is reached, here or at the server',
  ACCEPTED: 'the client came over TCP; it knows why',
  NOT_INSTALLED: 'the connection is older than fastsockets/register',
  NOT_CONNECTED: 'it was closed before a wire was chosen, or never connected',
  SHARED_PORT: 'other UDP sockets have the port, or may have it',
  SOCKET_OPTION: 'the UDP socket has an option that only the kernel can honour',
  NOT_STARTED: 'something that the fast way needs is missing, or may not be used',
  NOT_MOVABLE: 'the connection stays on TCP for now: it cannot be moved',
} as const

export type FallbackCode = keyof typeof FALLBACK_REASONS

export interface FallbackReason {
  readonly code: FallbackCode
  readonly text: string
  /**
   * True if the next attempt may end otherwise: the reason is then cached for a shorter time than `code` alone says.
   */
  readonly mayPass?: boolean
}

/** The reason for `code`; `detail` is added to its text. */
export function fallbackReason(code: FallbackCode, detail?: string): FallbackReason {
  const text = FALLBACK_REASONS[code]
  return { code, text: detail === undefined ? text : `${text} (${shownText(detail)})` }
}
