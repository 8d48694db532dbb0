/**
 * Node's lists of the handles that keep this process alive. Programs and their tests search them for sockets left open:
 * fast sockets are listed as TCP sockets are; our own handles are left out.
 */
import { isOwn } from '../../nic/index.ts'
import type { Peers } from '../connect/peers.ts'
import { isFastHandle } from '../handle/fast-handle.ts'
import type { FastHandle } from '../handle/fast-handle-contract.ts'

/** Not in the types of Node: undocumented, and widely used. */
interface ProcessInternals {
  /** Sockets and servers, where a handle belongs to one. */
  _getActiveHandles?(): object[]
}
type Owner = { readonly _handle?: object | null; readonly listening?: boolean }

export function showActive(peers: Peers): void {
  const internals = process as typeof process & ProcessInternals
  const { _getActiveHandles, getActiveResourcesInfo } = internals
  if (_getActiveHandles === undefined) return
  internals._getActiveHandles = () => [
    ..._getActiveHandles.call(process).filter(owner => !isOwn(owner)),
    ...activeHandles(peers).map(handle => handle.socket as object),
  ]
  if (getActiveResourcesInfo === undefined) return
  process.getActiveResourcesInfo = () => {
    const names = getActiveResourcesInfo.call(process)
    const own = _getActiveHandles.call(process).filter(isOwn).map(resourceOf)
    // A timer at each end keeps the channel of this thread to itself alive.
    for (const { refCount } of peers.ownChannels) if (refCount > 0) own.push('Timeout')
    for (const name of own) {
      const at = names.indexOf(name)
      if (at >= 0) names.splice(at, 1)
    }
    for (const { stream } of activeHandles(peers))
      names.push(stream?.addresses === undefined ? 'PipeWrap' : 'TCPSocketWrap')
    return names
  }
}

function activeHandles(peers: Peers): FastHandle[] {
  return peers
    .streams()
    .map(({ sink }) => sink as unknown as FastHandle)
    .filter(it => isFastHandle(it) && !it.isClosed && !it.isUnreferenced && it.socket !== undefined)
}

function resourceOf({ _handle, listening }: Owner): string {
  const kind = _handle?.constructor.name
  if (kind === 'Pipe') return listening === undefined ? 'PipeWrap' : 'PipeServerWrap'
  return listening === undefined ? 'TCPSocketWrap' : 'TCPServerWrap'
}
