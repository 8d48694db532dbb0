/** `tcp`, the default: connections start on TCP, and become fast once that pays; `fast`: they wait for the fast way. */
export const START_VARIABLE = 'FASTSOCKETS_START'
