/** All that index.ts loads on first use. */
export { faultDriver, wrapWithFaults } from '../fault/fault-driver.ts'
export { traceDriver, traceInterface } from '../trace/trace-driver.ts'
