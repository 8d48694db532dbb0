/** `node --require fastsockets/register app.js`: the same for CommonJS preloads. Needs Node 20.19, as require(esm) does. */
// What is required cannot be waited for: here the name service is got ready while the program runs.
if (require('./install.js').install()) void require('./names.js').prepareNames()
