/** Asks again and again whether a living peer is there. Its profiler sends it signals all the time. */
import { type Driver, drivers } from '../../../nic/index.ts'

const ASKED = 300_000

const shm = drivers.get('shm') as Driver
const offer = shm.offer()
const [end, peer] = await Promise.all([offer.accepted, shm.connect(offer.blob)])
let gone = 0
for (let i = 0; i < ASKED; i++) if (end.hasPeer !== true) gone++
peer.close()
process.send?.({ gone, afterwards: end.hasPeer }, () => process.exit())
