/** Tests of what only newer Nodes have. */
import net from 'node:net'
import t, { type Test } from 'tap'

/** Which Node it takes, for people, and whether this is one. */
interface Need {
  readonly node: string
  readonly isMet: boolean
}

export const SHARED_PORTS: Need = { node: '22.12', isMet: isAtLeast(22, 12) }
export const BOUND_SOCKETS: Need = { node: '24', isMet: 'BoundSocket' in net }
export const TYPE_OF_SERVICE: Need = { node: '24', isMet: 'setTypeOfService' in net.Socket.prototype }
export const MOVED_SERVERS: Need = {
  node: '24',
  isMet: Object.getOwnPropertySymbols(net.Server.prototype).some(({ description }) =>
    description?.includes('transfer'),
  ),
}

/** On a Node without what it needs, a test says by its name that it was not run. */
export function testIf(need: Need, name: string, run: (t: Test) => Promise<void>): void {
  void t.test(name, { skip: need.isMet ? false : `needs Node ${need.node}` }, run)
}

function isAtLeast(major: number, minor: number): boolean {
  const [ourMajor = 0, ourMinor = 0] = process.versions.node.split('.').map(Number)
  return ourMajor > major || (ourMajor === major && ourMinor >= minor)
}
