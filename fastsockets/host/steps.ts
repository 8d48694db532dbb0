/**
 * The steps by which two processes come to a connection, told to `fastsockets:step` of `node:diagnostics_channel` at the
 * very moment, unlike the events of events.ts: tests stop a process at each of them (tests/chaos/), and whoever looks for
 * a slow handshake can take the times. Nothing is told unless somebody has subscribed.
 */
import diagnostics from 'node:diagnostics_channel'

/** In the order in which they happen; those of the two sides go into each other. */
export const STEPS = [
  'client calling',
  'server called',
  'server greeted',
  'client greeted',
  'client introduced',
  'server introduced',
  'server answered',
  'client answered',
  'channel open',
  'client asked',
  'server asked',
  'server accepted',
] as const

export type Step = (typeof STEPS)[number]

const channel = diagnostics.channel('fastsockets:step')

export function tellStep(step: Step): void {
  if (channel.hasSubscribers) channel.publish(step)
}
