/** The types of `require('fastsockets')`. Written by hand, as the compiler emits no `import =`. */
import fastsockets = require('../dist/types/fastsockets/types.js')
export = fastsockets
