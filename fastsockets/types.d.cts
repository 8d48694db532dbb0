/** What TypeScript sees of `require('fastsockets')`. The compiler takes it along as it is: it emits no `import =`. */
import fastsockets = require('../dist/fastsockets/types.js')
export = fastsockets
