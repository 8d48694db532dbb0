/** Destroys each socket that it is handed. */
import type { Socket } from 'node:net'

process.on('message', (_message, socket: Socket) => void socket.destroy())
process.on('disconnect', () => process.exit())
