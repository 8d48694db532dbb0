/** The types of `require('fastsockets')`. Written by hand, as the compiler emits no `import =`. */
import fastsockets = require('../dist/fastsockets/types.cjs')
export = fastsockets
