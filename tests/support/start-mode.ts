/** Whether relinked programs of this run are fast at once. In the other modes (tests/modes.ts) a connection may still be on TCP when a test looks. */
export const startsFast = process.env.FASTSOCKETS_START === 'fast'
