/** Connects before anything of ours is loaded, and reports what is on record about it. argv: port */
import { connect } from 'node:net'

const socket = connect(Number(process.argv[2]), '127.0.0.1', async () => {
  const { transportOf } = await import('../../../fastsockets/index.ts')
  process.send?.(transportOf(socket), () => process.exit())
})
