/** `require('fastsockets')`: the default export. */
module.exports = require('./entry.cjs').fastsockets
