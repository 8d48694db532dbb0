/**
 * One side of a scenario as a process. Its parent, interop.test.ts, says with messages what to do: serve, tell what was
 * seen meanwhile, call a server. At the end the channel to the parent is closed, and the process must end by itself.
 */
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { transportOf } from '../../fastsockets/handle/transport.ts'
import { HOST } from '../support/placement.ts'
import { Journal } from './journal.ts'

/** Where a service is; further ports by name. */
export type Place = { readonly port: number } & Readonly<Record<string, number>>

export interface Service {
  readonly place: Place
  close(): Promise<unknown> | unknown
}

export interface Scenario {
  /** Absent if the server is an external program. */
  serve?(journal: Journal): Promise<Service>
  call(place: Place, journal: Journal): Promise<void>
}

export type Command = { readonly do: 'serve' | 'finish' | 'exit' } | { readonly do: 'call'; place: Place }

/** What a process has seen, and on which wires its own connections were. */
export interface Seen {
  readonly lists: Record<string, string[]>
  readonly wires: readonly string[]
}

/** Where a server is; it listens from now on if it does not yet. */
export async function placeOf(server: net.Server, port = 0): Promise<Place> {
  if (server.address() === null) await once(server.listen(port, HOST), 'listening')
  return { port: (server.address() as AddressInfo).port }
}

/** A port without a listener. */
export async function deadPort(): Promise<number> {
  const server = net.createServer().listen(0, HOST)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Tries until it works: for servers that are down for a moment. */
export async function retry<T>(action: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await action()
    } catch {
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }
}

export const closed = (server: net.Server): Promise<unknown> => new Promise(resolve => server.close(resolve))

/** Runs `scenario` as the parent says. */
export function play(scenario: Scenario): void {
  const wires = watchWires()
  let service: Service | undefined
  let journal = new Journal()

  async function obey(command: Command): Promise<void> {
    switch (command.do) {
      case 'serve':
        journal = new Journal()
        service = await scenario.serve?.(journal)
        for (const [name, port] of Object.entries(service?.place ?? {})) journal.mask(port, `<${name}>`)
        process.send?.(service?.place)
        break
      case 'call':
        journal = new Journal()
        for (const [name, port] of Object.entries(command.place)) journal.mask(port, `<${name}>`)
        await scenario.call(command.place, journal)
        process.send?.({ lists: journal.lists, wires: wires() } satisfies Seen)
        break
      case 'finish':
        await service?.close()
        process.send?.({ lists: journal.lists, wires: wires() } satisfies Seen)
        break
      case 'exit':
        process.disconnect()
    }
  }

  process.on('message', command => {
    obey(command as Command).catch(error => {
      console.error(error)
      process.exit(1)
    })
  })
}

/** Remembers the sockets that this process connects; the result has the wires of those since the last call. */
function watchWires(): () => string[] {
  const { connect } = net.Socket.prototype
  const seen = new Set<string>()
  net.Socket.prototype.connect = function (this: net.Socket, ...args: unknown[]): net.Socket {
    this.once('connect', () => {
      const { transport, reason } = transportOf(this)
      seen.add(reason === undefined ? transport : `${transport} ${reason.code}`)
    })
    return (connect as (...args: unknown[]) => net.Socket).apply(this, args)
  } as typeof connect
  return () => {
    const wires = [...seen].sort()
    seen.clear()
    return wires
  }
}
