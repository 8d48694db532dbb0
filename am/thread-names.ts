import type { NameClient } from '../nameservice/index.ts'
import { newOwnSocket } from '../nic/index.ts'

let client: NameClient | undefined

/** The thread's one client of the name service. Loaded on first use; it connects when it is used. */
export async function threadNames(): Promise<NameClient> {
  const { NameClient } = await import('../nameservice/index.ts')
  client ??= new NameClient({ openSocket: newOwnSocket })
  return client
}
