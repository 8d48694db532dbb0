/**
 * The operations of the daemon. Each is one object: method, path, schemas, answers, problems and its function.
 * Routing, checks and the OpenAPI document are made from it. No web framework has hooks for the rest: callers
 * identified by the kernel, connections evicted across listeners, problem documents for incomplete requests.
 */
import type { IncomingMessage } from 'node:http'
import { kindOf } from '../name.ts'
import { Refusal } from '../problem.ts'
import { formatCursor, parseCursor } from '../store/change-log.ts'
import type { Store } from '../store/store.ts'
import type { StoredEntry } from '../store/stored.ts'
import { CURSOR, LEASE_ID, NAME, NEW_LEASE, PREFIX, REGISTRATION, WATCH } from './api-schemas.ts'
import { type Answer, type Call, EVENT_STREAM_TYPE, JSON_TYPE, type Operation } from './operation.ts'
import { requireRead } from './principal.ts'
import { entryJson, type Registrar, type RegistrationRequest } from './registrar.ts'
import { WatchFilter } from './watch-filter.ts'
import type { WatchHub } from './watch-hub.ts'

const PAGE_DEFAULT = 500
const PAGE_MAX = 1000
/** Most characters of the records of one page, except for the last record. */
const PAGE_LENGTH_MAX = 1024 * 1024
const WATCHED_MAX = 256
const PAGE_LIMIT = { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE_DEFAULT } as {
  type: 'integer'
}

export interface Services {
  readonly store: Store
  readonly registrar: Registrar
  readonly hub: WatchHub
  /** Reasons for which the daemon is not ready; empty if it is. */
  readonly unreadiness: () => readonly string[]
  readonly metrics: () => Promise<{ text: string; mediaType: string }>
  readonly openApi: () => string
  /** Address of the page for a browser, with its token; undefined if there is none. */
  readonly pageAddress: () => string | undefined
}

interface WatchRequest {
  readonly prefixes?: readonly string[]
  readonly names?: readonly string[]
  readonly after?: string
}

export function makeOperations(services: Services): Operation[] {
  return [
    ...leaseOperations(services),
    ...nameOperations(services),
    ...watchOperations(services),
    ...operatorOperations(services),
  ]
}

function leaseOperations({ registrar }: Services): Operation[] {
  const granted = { 201: { description: 'The lease.', content: 'Lease' } }
  const lease = { 200: { description: 'The lease.', content: 'Lease' } }
  return [
    {
      id: 'grantLease',
      method: 'POST',
      path: '/v1/leases',
      summary: 'Grant a lease',
      description: 'Names live as long as their lease, and that as long as it is kept alive.',
      access: 'write',
      body: { name: 'NewLease', schema: NEW_LEASE, isOptional: true },
      answers: granted,
      problems: ['limit-leases', 'limit-total', 'store-unavailable'],
      handle: async ({ principal, body }) =>
        json(await registrar.grant(principal, (body as { ttlMs?: number } | undefined)?.ttlMs), 201),
    },
    {
      id: 'listLeases',
      method: 'GET',
      path: '/v1/leases',
      summary: "List the caller's leases, in the order of their ids; an administrator sees all",
      access: 'read',
      query: { after: { ...LEASE_ID, type: 'string' }, limit: PAGE_LIMIT },
      answers: { 200: { description: 'A page of leases.', content: 'Leases' } },
      isListing: true,
      problems: [],
      handle: ({ principal, query }) => {
        const { after = '', limit = PAGE_DEFAULT } = query as { after?: string; limit?: number }
        const found = registrar.leases(principal, after, limit + 1)
        const leases = found.slice(0, limit)
        return json({ leases, ...(found.length > limit && { next: leases.at(-1)?.id }) })
      },
    },
    {
      id: 'getLease',
      method: 'GET',
      path: '/v1/leases/{lease}',
      summary: 'Look up a lease',
      access: 'read',
      target: LEASE_ID,
      answers: lease,
      problems: ['no-such-lease', 'store-unavailable'],
      handle: async ({ principal, target }) => json(await registrar.lease(principal, target)),
    },
    {
      id: 'keepLeaseAlive',
      method: 'POST',
      path: '/v1/leases/{lease}/keepalive',
      summary: 'Keep a lease alive: it has its whole TTL again',
      access: 'write',
      target: LEASE_ID,
      answers: lease,
      problems: ['no-such-lease', 'store-unavailable'],
      handle: async ({ principal, target }) => json(await registrar.keepAlive(principal, target)),
    },
    {
      id: 'revokeLease',
      method: 'DELETE',
      path: '/v1/leases/{lease}',
      summary: 'End a lease, and with it its names',
      access: 'write',
      target: LEASE_ID,
      answers: { 204: { description: 'It has ended.', content: null } },
      problems: ['no-such-lease', 'store-unavailable'],
      handle: async ({ principal, target }) => {
        await registrar.revoke(principal, target)
        return { status: 204, text: '' }
      },
    },
  ]
}

function nameOperations({ store, registrar }: Services): Operation[] {
  const entry = { description: 'What the name stands for.', content: 'Entry' }
  return [
    {
      id: 'registerName',
      method: 'PUT',
      path: '/v1/names/{name}',
      summary: 'Register a name, or change what it stands for',
      description:
        'A name that is held under another lease is a conflict. With `takeover` it changes hands if the holder has the same owner and registered it with the same `ownerKey`.',
      access: 'write',
      target: NAME,
      body: { name: 'Registration', schema: REGISTRATION },
      answers: { 200: entry },
      hasFreshness: true,
      problems: [
        'no-such-lease',
        'name-held',
        'limit-names',
        'limit-bytes',
        'limit-total',
        'store-unavailable',
      ],
      handle: async ({ principal, target, body }) => {
        const entry = await registrar.register(principal, target, body as RegistrationRequest)
        // Not the head of the log: the same batch may contain a later change of the name by another caller.
        const cursor = formatCursor({ epoch: store.log.epoch, revision: entry.revision, part: 0 })
        return { status: 200, text: entryJson(entry), headers: { 'fastsockets-cursor': cursor } }
      },
    },
    {
      id: 'deregisterName',
      method: 'DELETE',
      path: '/v1/names/{name}',
      summary: 'Remove a name',
      access: 'write',
      target: NAME,
      query: { lease: { ...LEASE_ID, type: 'string' } },
      answers: { 200: { description: 'It is removed.', content: 'Removal' } },
      problems: ['no-such-name', 'name-held', 'store-unavailable'],
      handle: async ({ principal, target, query }) =>
        json({
          name: target,
          revision: await registrar.deregister(principal, target, query.lease as string | undefined),
        }),
    },
    {
      id: 'lookUpName',
      method: 'GET',
      path: '/v1/names/{name}',
      summary: 'Look up a name',
      access: 'read',
      target: NAME,
      answers: { 200: entry },
      hasFreshness: true,
      problems: ['no-such-name'],
      handle: ({ principal, target }) => {
        if (kindOf(target) === undefined) throw badName()
        requireRead(principal, target)
        return answer(entryJson(registrar.entry(target)))
      },
    },
    {
      id: 'listNames',
      method: 'GET',
      path: '/v1/names',
      summary: 'List names by prefix, in order',
      access: 'read',
      query: {
        prefix: { ...PREFIX, type: 'string' },
        after: { ...NAME, type: 'string' },
        limit: PAGE_LIMIT,
      },
      answers: { 200: { description: 'A page of names.', content: 'Entries' } },
      isListing: true,
      hasFreshness: true,
      problems: [],
      handle: ({ principal, query }) => {
        const {
          prefix = '',
          after = '',
          limit = PAGE_DEFAULT,
        } = query as { prefix?: string; after?: string; limit?: number }
        requireRead(principal, prefix)
        const found = store.image.list(prefix, after, limit + 1)
        const entries = pageOf(found, limit)
        const next = found.length > entries.length ? `,"next":${JSON.stringify(entries.at(-1)?.name)}` : ''
        return answer(`{"entries":[${entries.map(entryJson).join()}],"cursor":"${store.log.head}"${next}}`)
      },
    },
  ]
}

function watchOperations({ hub }: Services): Operation[] {
  const events =
    'Server-Sent Events. `hello` comes first, then a `change` for each change of a watched name, and now and then a `bookmark`. Their ids are cursors: a client that comes back with the last one as `Last-Event-ID` receives every later change once. `behind` and `goodbye` are the last of a stream, and say why in a problem document.'
  const common = {
    access: 'read' as const,
    answers: { 200: { description: events, content: EVENT_STREAM_TYPE } },
    problems: ['behind', 'limit-watchers', 'limit-total'] as const,
  }
  return [
    {
      ...common,
      id: 'watch',
      method: 'GET',
      path: '/v1/watch',
      summary: 'Watch names by prefixes and by themselves; without either, all of them',
      query: {
        prefix: { type: 'array', maxItems: WATCHED_MAX, items: PREFIX } as { type: 'array' },
        name: { type: 'array', maxItems: WATCHED_MAX, items: NAME } as { type: 'array' },
        after: { ...CURSOR, type: 'string' },
      },
      handle: call => {
        const { prefix, name, after } = call.query as { prefix?: string[]; name?: string[]; after?: string }
        return watch(hub, call, {
          ...(prefix === undefined ? {} : { prefixes: prefix }),
          ...(name === undefined ? {} : { names: name }),
          ...(after === undefined ? {} : { after }),
        })
      },
    },
    {
      ...common,
      id: 'watchMany',
      method: 'POST',
      path: '/v1/watch',
      summary: 'The same, for more names than a URL holds',
      body: { name: 'Watch', schema: WATCH },
      handle: call => watch(hub, call, call.body as WatchRequest),
    },
  ]
}

function operatorOperations({ unreadiness, metrics, openApi, pageAddress }: Services): Operation[] {
  const health = { description: 'All is well.', content: 'Health' }
  return [
    {
      id: 'healthz',
      method: 'GET',
      path: '/healthz',
      summary: 'Whether the daemon lives',
      access: 'open',
      answers: { 200: health },
      problems: [],
      handle: () => json({ status: 'ok' }),
    },
    {
      id: 'readyz',
      method: 'GET',
      path: '/readyz',
      summary: 'Whether the daemon can do all that it is for',
      access: 'open',
      answers: { 200: health, 503: { description: 'It cannot; the reasons are given.', content: 'Health' } },
      problems: [],
      handle: () => {
        const reasons = unreadiness()
        return reasons.length === 0 ? json({ status: 'ok' }) : json({ status: 'unavailable', reasons }, 503)
      },
    },
    {
      id: 'metrics',
      method: 'GET',
      path: '/metrics',
      summary: 'Counters, for Prometheus',
      access: 'read',
      answers: { 200: { description: 'Text exposition format.', content: 'text/plain' } },
      problems: [],
      handle: async () => ({ status: 200, ...(await metrics()) }),
    },
    {
      id: 'pageAddress',
      method: 'GET',
      path: '/v1/page',
      summary: 'The address, with a token, of a page for a browser of this host; administrators only',
      access: 'read',
      answers: { 200: { description: 'The address.', content: 'PageAddress' } },
      problems: ['no-such-resource'],
      handle: ({ principal }) => {
        if (!principal.isAdmin) throw new Refusal('forbidden', 'The page is for administrators.')
        const address = pageAddress()
        if (address !== undefined) return json({ address })
        throw new Refusal('no-such-resource', 'There is no page: tcp.listen is not 127.0.0.1, or has TLS.')
      },
    },
    {
      id: 'openApi',
      method: 'GET',
      path: '/v1/openapi.json',
      summary: 'This document',
      access: 'open',
      answers: { 200: { description: 'OpenAPI 3.1.', content: JSON_TYPE } },
      problems: [],
      handle: () => answer(openApi()),
    },
  ]
}

function watch(hub: WatchHub, { principal, request, response }: Call, asked: WatchRequest): undefined {
  const { prefixes = [], names = [] } = asked
  const filter = new WatchFilter(prefixes, names)
  for (const prefix of filter.prefixes) requireRead(principal, prefix)
  for (const name of filter.names) requireRead(principal, name)
  const after = lastEventId(request) ?? asked.after
  const cursor = after === undefined ? undefined : parseCursor(after)
  if (after !== undefined && cursor === undefined) {
    throw new Refusal('malformed', 'Last-Event-ID is not the id of an event.', {
      errors: [{ at: 'Last-Event-ID', detail: 'is not the id of an event' }],
    })
  }
  hub.open(principal.owner, filter, cursor, response, principal.isAdmin)
}

function pageOf(found: readonly StoredEntry[], limit: number): readonly StoredEntry[] {
  let length = 0
  const end = found.findIndex(({ record }, i) => {
    const isFull = i === limit || length > PAGE_LENGTH_MAX
    length += record.length
    return isFull
  })
  return end < 0 ? found : found.slice(0, end)
}

function lastEventId(request: IncomingMessage): string | undefined {
  const id = request.headers['last-event-id']
  return typeof id === 'string' && id !== '' ? id : undefined
}

function badName(): Refusal {
  const detail = 'is neither an endpoint nor an inet name'
  return new Refusal('malformed', `The name ${detail}.`, { errors: [{ at: 'name', detail }] })
}

function json(value: unknown, status = 200): Answer {
  return { status, text: JSON.stringify(value) }
}

function answer(text: string): Answer {
  return { status: 200, text }
}
