/** Counts of one channel since its creation. */
export class ChannelCounts {
  requests = 0
  returned = 0
  refusedForCredit = 0
  refusedForRoom = 0
  payloadBytes = 0
}
