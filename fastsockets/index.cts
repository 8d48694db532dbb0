/** `require('fastsockets')`: the default export. Needs Node 20.19, as require(esm) does. */
module.exports = require('./index.js').default
