/** `tcp`, the default: connections start on TCP, and become fast once that pays; `fast`: they wait for the fast way. */
export const START_VARIABLE = 'FASTSOCKETS_START'
/** `fast` or `kernel`: what may carry the datagrams of `node:dgram`. */
export const DATAGRAMS_VARIABLE = 'FASTSOCKETS_DATAGRAMS'
