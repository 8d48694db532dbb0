/** The page of the daemon for a browser of this host. The command line tool makes it, and passes it to the daemon. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { DaemonView } from '../daemon-view.ts'
import type { Image } from '../store/image.ts'
import type { WatchHub } from './watch-hub.ts'

const ROWS_MAX = 1000
/** Of what one watcher watches. */
const WATCHED_MAX = 8

export interface DaemonPage {
  /** Requests for these go to `handle`, which checks the caller itself. */
  readonly paths: ReadonlySet<string>
  /** The address to open, with its token. Called before `handle`. */
  addressOn(port: number): string
  handle(request: IncomingMessage, response: ServerResponse): void
  close(): void
}

export type MakePage = (view: () => DaemonView) => DaemonPage

export function viewOf(image: Image, hub: WatchHub): DaemonView {
  const watchers = [...hub.watchers()]
  return {
    names: image.list('', '', ROWS_MAX).map(({ name, record, owner, lease, revision }) => {
      const { endpoint } = JSON.parse(record) as { endpoint: string }
      return { name, endpoint, owner, lease, revision }
    }),
    leases: image.leases(undefined, '', ROWS_MAX).map(lease => ({
      lease: lease.id,
      owner: lease.owner,
      ttlMs: lease.ttlMs,
      expiresInMs: image.expiresInMs(lease),
      names: lease.names.size,
    })),
    watchers: watchers.slice(0, ROWS_MAX).map(({ owner, filter, isCurrent }) => ({
      owner,
      watched: [...filter.prefixes.map(prefix => `${prefix}*`), ...filter.names].slice(0, WATCHED_MAX),
      isCurrent,
    })),
    isCut: [image.nameCount, image.leaseCount, watchers.length].some(count => count > ROWS_MAX),
  }
}
