/**
 * How each contestant looks in every picture: its name for readers, its colour, its symbol. The relinked program has the one
 * strong colour, plain TCP is dark grey. The other colours are those of Okabe and Ito, which colour-blind readers can tell
 * apart, or darker shades of them.
 */
export interface Look {
  readonly label: string
  readonly colour: string
  readonly symbol: Symbol
}

/** As echarts names them. */
export type Symbol =
  | 'circle'
  | 'rect'
  | 'triangle'
  | 'diamond'
  | 'emptyCircle'
  | 'emptyRect'
  | 'emptyTriangle'

export const PLAIN = 'net-tcp'
export const RELINKED = 'net-relinked'

const LOOKS: ReadonlyMap<string, Look> = new Map(
  Object.entries({
    [RELINKED]: { label: 'relinked', colour: '#d55e00', symbol: 'circle' },
    [PLAIN]: { label: 'plain TCP', colour: '#4d4d4d', symbol: 'rect' },
    'net-half-relinked': { label: 'only the client relinked', colour: '#b08a70', symbol: 'emptyCircle' },
    'net-relinked-server': { label: 'only the server relinked', colour: '#7a8a99', symbol: 'emptyRect' },
    'net-unix': { label: 'plain unix socket', colour: '#e69f00', symbol: 'triangle' },
    'message-port': { label: 'MessagePort, two threads', colour: '#cc79a7', symbol: 'diamond' },
    'child-ipc': { label: 'child_process IPC', colour: '#8a8a00', symbol: 'emptyTriangle' },
    'zeromq-ipc': { label: 'ZeroMQ, ipc', colour: '#6a3d9a', symbol: 'emptyRect' },
    raw: { label: 'raw sockets', colour: '#56b4e9', symbol: 'triangle' },
    'raw-polling': { label: 'raw sockets, polling', colour: '#0072b2', symbol: 'emptyTriangle' },
    'am-events': { label: 'active messages', colour: '#7fc8a9', symbol: 'diamond' },
    'am-polling': { label: 'active messages, polling', colour: '#009e73', symbol: 'emptyCircle' },
    'nic-shm': { label: 'the driver alone, polling', colour: '#1b5e20', symbol: 'emptyRect' },
    'c-limit': { label: 'the limit, in C', colour: '#000000', symbol: 'rect' },
    'as-shipped': { label: 'as shipped', colour: '#d55e00', symbol: 'circle' },
    'no-posting': { label: 'without receive posting', colour: '#0072b2', symbol: 'triangle' },
    'no-delayed-acks': { label: 'without delayed acks', colour: '#009e73', symbol: 'diamond' },
    'no-coalescing': { label: 'without coalescing', colour: '#cc79a7', symbol: 'emptyCircle' },
    'zcopy-off': { label: 'always copied', colour: '#4d4d4d', symbol: 'rect' },
    'zcopy-from-32-KiB': { label: 'ZCopy from 32 KiB', colour: '#56b4e9', symbol: 'triangle' },
    'zcopy-from-128-KiB': { label: 'ZCopy from 128 KiB', colour: '#0072b2', symbol: 'diamond' },
    'zcopy-from-512-KiB': { label: 'ZCopy from 512 KiB', colour: '#6a3d9a', symbol: 'emptyTriangle' },
  } satisfies Record<string, Look>),
)

/** For series that are no contestant: workloads, and names of reports from elsewhere. */
const OTHERS: readonly Omit<Look, 'label'>[] = [
  { colour: '#0072b2', symbol: 'circle' },
  { colour: '#009e73', symbol: 'triangle' },
  { colour: '#cc79a7', symbol: 'diamond' },
  { colour: '#e69f00', symbol: 'rect' },
  { colour: '#6a3d9a', symbol: 'emptyCircle' },
  { colour: '#8a8a00', symbol: 'emptyTriangle' },
]

/** `index` tells series without a look of their own apart. */
export function lookOf(name: string, index = 0): Look {
  return LOOKS.get(name) ?? { label: name, ...(OTHERS[index % OTHERS.length] as Omit<Look, 'label'>) }
}

export function colourOf(contestant: string): string {
  return lookOf(contestant).colour
}

export function isEmphasized(name: string): boolean {
  return name === RELINKED || name === 'as-shipped'
}
