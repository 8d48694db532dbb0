/**
 * All suites, in the order in which they run. What a suite imports at its top must be a dependency of the package; a
 * package that users may not have is imported when the suite runs, and named by `skip` if it is missing.
 */
import type { Suite } from './suite.ts'

export const SUITES: readonly Suite[] = []
