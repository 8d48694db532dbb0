/**
 * tap has a thread in every test file that sees all modules it loads, for coverage, which is off here: 0.4 s of CPU time a file. A test file
 * starts without it. `--require`, as it runs before any `--import`.
 */
const nodeModule = require('node:module') as typeof import('node:module')

const { register } = nodeModule
nodeModule.register = ((specifier: string | URL, ...rest: never[]) => {
  if (!String(specifier).includes('/@tapjs/processinfo/')) register(specifier, ...rest)
}) as typeof register
