/** argv: port bytes. Sends so many bytes ten times by a raw socket, each in one piece, then the end. */
import { connect } from '../../../fastsockets/raw/index.ts'
import { patterned } from '../../support/pattern.ts'

const [port = '', bytes = ''] = process.argv.slice(2)
const length = Number(bytes)
const socket = await connect({ host: '127.0.0.1', port: Number(port) })
for (let i = 0; i < 10; i++) await socket.send(patterned(i * length, length))
socket.shutdown()
process.on('disconnect', () => socket.close())
