/**
 * Publishes the steps of a handshake on the channel `fastsockets:step` of `node:diagnostics_channel`, synchronously,
 * unlike the events of events.ts. Tests stop a process at each step (tests/chaos/); a subscriber can time a slow
 * handshake. Without a subscriber nothing is published.
 */
import diagnostics from 'node:diagnostics_channel'

/** In order of time; the steps of client and server interleave. */
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

export function publishStep(step: Step): void {
  if (channel.hasSubscribers) channel.publish(step)
}
