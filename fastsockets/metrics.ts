/** `fastsockets/metrics`: the counters of this thread, for prom-client, the usual collector of Node programs. */
import { Counter, Gauge, type Registry, register } from 'prom-client'
import { verbsUse } from '../nic/index.ts'
import { decodeStatus, type ThreadStatus } from './status/decode-status.ts'
import { statusPage } from './status/status-page.ts'

export interface MetricsOptions {
  /** prom-client's default registry, if omitted. */
  readonly registry?: Registry
}

/**
 * Registers these metrics. Each is read when prom-client collects, and costs nothing in between.
 *
 *   fastsockets_connections{transport,reason}   sockets that are open; reason is empty if they are fast
 *   fastsockets_connections_opened_total        sockets that were opened, fast or not
 *   fastsockets_bytes_total{direction}          bytes of fast sockets, `in` and `out`
 *   fastsockets_zcopy_bytes_total{direction}    those of them that a reader fetched from the writer's memory
 *   fastsockets_datagrams_total{direction}      datagrams of UDP sockets that did not take the kernel's road
 *   fastsockets_datagrams_dropped_total{direction}  those of them that were dropped here: the receiver's socket was full
 *   fastsockets_credit_bytes                    bytes that may still be sent, over all fast sockets
 *   fastsockets_buffered_bytes                  bytes received and not read by the program, over all fast sockets
 *   fastsockets_fallbacks_total{reason}         connections and listeners that are not fast
 *   fastsockets_promotions_total{direction}       connections that have moved to the `fast` way, and back to `tcp`
 *   fastsockets_promotion_refusals_total{reason} moves that were refused, or for which no channel was found
 *   fastsockets_poller_total{event}             turns, messages, emptyTurns, sleeps, doorbells
 *   fastsockets_verbs_total{counter}            operations of the RDMA driver (docs/guide/rdma.md), once it is in use
 *   fastsockets_verbs_pinned_bytes{use}         memory that it has pinned: rings of connections, registrations
 */
export function registerMetrics({ registry = register }: MetricsOptions = {}): void {
  const registers = [registry]
  const configuration = (name: string, help: string, labelNames: string[], values: () => Samples) => ({
    name: `fastsockets_${name}`,
    help,
    labelNames,
    registers,
    collect(this: Counter | Gauge) {
      this.reset()
      for (const [labels, value] of values()) this.inc(labels, value)
    },
  })
  const counter = (...of: Parameters<typeof configuration>) => new Counter(configuration(...of))
  const gauge = (...of: Parameters<typeof configuration>) => new Gauge(configuration(...of))

  gauge('connections', 'Sockets that are open.', ['transport', 'reason'], () =>
    status().sockets.map(({ transport, reason = '' }) => [{ transport, reason }, 1]),
  )
  gauge('credit_bytes', 'Bytes that may still be sent before a peer takes any.', [], () => [
    [{}, status().sockets.reduce((sum, { creditLeft = 0 }) => sum + creditLeft, 0)],
  ])
  gauge('buffered_bytes', 'Bytes that were received and not taken by the program.', [], () => [
    [{}, status().sockets.reduce((sum, { recvQueue = 0 }) => sum + recvQueue, 0)],
  ])
  counter('connections_opened_total', 'Sockets that were opened.', [], () => [[{}, status().opened]])
  counter('bytes_total', 'Bytes of fast sockets.', ['direction'], () => [
    [{ direction: 'in' }, status().bytesIn],
    [{ direction: 'out' }, status().bytesOut],
  ])
  counter(
    'zcopy_bytes_total',
    'Those of them that were fetched from the memory of the writer.',
    ['direction'],
    () => [
      [{ direction: 'in' }, status().zcopyBytesIn],
      [{ direction: 'out' }, status().zcopyBytesOut],
    ],
  )
  counter('datagrams_total', 'Datagrams past the kernel.', ['direction'], () => [
    [{ direction: 'in' }, status().datagramsIn],
    [{ direction: 'out' }, status().datagramsOut],
  ])
  counter('datagrams_dropped_total', 'Those of them that were dropped here.', ['direction'], () => [
    [{ direction: 'in' }, status().droppedIn],
    [{ direction: 'out' }, status().droppedOut],
  ])
  counter('fallbacks_total', 'Connections and listeners that are not fast.', ['reason'], () =>
    Object.entries(status().fallbacks).map(([reason, count]) => [{ reason }, count]),
  )
  counter('promotions_total', 'Connections that have moved.', ['direction'], () => [
    [{ direction: 'fast' }, status().promoted],
    [{ direction: 'tcp' }, status().demoted],
  ])
  counter('promotion_refusals_total', 'Moves that were refused.', ['reason'], () =>
    Object.entries(status().refusals).map(([reason, count]) => [{ reason }, count]),
  )
  counter('poller_total', 'What the poller of this thread has done.', ['event'], () =>
    Object.entries(status().poller).map(([event, count]) => [{ event }, count]),
  )
  counter('verbs_total', 'What the RDMA driver has done.', ['counter'], () =>
    Object.entries(verbsUse()?.counters ?? {}).map(([counter, count]) => [{ counter }, count]),
  )
  gauge('verbs_pinned_bytes', 'Memory that is pinned for the RDMA device.', ['use'], () =>
    Object.entries(verbsUse()?.pinned ?? {}).map(([use, bytes]) => [{ use }, bytes]),
  )
}

type Samples = readonly (readonly [labels: Record<string, string>, value: number])[]

function status(): ThreadStatus {
  return decodeStatus(statusPage().image) as ThreadStatus
}
