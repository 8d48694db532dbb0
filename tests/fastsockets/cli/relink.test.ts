/** What NODE_OPTIONS is without Fast Sockets. */
import t from 'tap'
import { plainNodeOptions, relinkedNodeOptions } from '../../../fastsockets/cli/relink.ts'

t.test('every way to preload it is taken out, and nothing else', async t => {
  const others = '--max-old-space-size=100 --require ./register.js --import=other/register "--title=a b"'
  t.equal(plainNodeOptions(others), others)
  t.equal(plainNodeOptions(relinkedNodeOptions(others)), others)
  for (const preload of [
    '--import fastsockets/register',
    '--import=fastsockets/register',
    '--require fastsockets/register',
    '-r fastsockets/register',
    '--require=/srv/node_modules/fastsockets/dist/fastsockets/register.cjs',
    '--import  file:///srv/my%20app/node_modules/fastsockets/dist/fastsockets/register.js',
    '--require "/srv/my app/node_modules/fastsockets/register"',
    '"--import=/srv/my \\"app\\"/fastsockets/register.js"',
  ]) {
    t.equal(plainNodeOptions(`${others} ${preload}`), others, preload)
    t.equal(plainNodeOptions(`${preload} ${others} ${preload}`), others, preload)
  }
  t.equal(plainNodeOptions(undefined), '')
})
