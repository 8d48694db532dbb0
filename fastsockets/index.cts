/** `require('fastsockets')`: the default export. */
module.exports = require('./entry.part.cjs').fastsockets
