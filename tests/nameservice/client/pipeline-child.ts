/** argv: socket. Nothing but a question that waits behind others, which are in the background, keeps this alive. */
import { Caller } from '../../../nameservice/client/caller.ts'
import { Target } from '../../../nameservice/client/target.ts'

/** As many as are on their way at once. */
const UNDERWAY = 32

process.channel?.unref()
const caller = new Caller(new Target({ address: `unix:${process.argv[2]}` }))
const ask = (name: string, isBackground: boolean) =>
  caller.ask({ method: 'GET', path: `/v1/names/${encodeURIComponent(name)}`, isBackground })
for (let i = 0; i < UNDERWAY; i++) void ask(`n/${i}`, true)
const { text } = await ask('n/last', false)
process.send?.({ name: JSON.parse(text).name })
