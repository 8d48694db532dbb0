/** What the name-service daemon has, asked now and then. Without a daemon the page says so. */
import { NameClient } from '../../../nameservice/index.ts'
import type { ShownNames } from './snapshot-types.ts'

const NAMES_MAX = 1000
const ASK_EVERY_MS = 2000
const TIMEOUT_MS = 1500

export class NamesView {
  readonly #client = new NameClient()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #now: ShownNames = { problem: 'not asked yet', names: [], leases: [], isCut: false }

  get now(): ShownNames {
    return this.#now
  }

  start(): void {
    void this.#ask()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    void this.#client.close()
  }

  async #ask(): Promise<void> {
    try {
      const { api } = this.#client
      const [{ entries, next }, leases] = await Promise.all([
        api.listPage('', '', { timeoutMs: TIMEOUT_MS }),
        api.leases({ timeoutMs: TIMEOUT_MS }),
      ])
      this.#now = {
        names: entries
          .slice(0, NAMES_MAX)
          .map(({ name, record, lease, revision }) => ({ name, endpoint: record.endpoint, lease, revision })),
        leases: leases.slice(0, NAMES_MAX).map(({ id, owner, ttlMs }) => ({ lease: id, owner, ttlMs })),
        isCut: next !== undefined || entries.length > NAMES_MAX || leases.length > NAMES_MAX,
      }
    } catch (error) {
      this.#now = { problem: (error as Error).message, names: [], leases: [], isCut: false }
    }
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#ask(), ASK_EVERY_MS)
  }
}
