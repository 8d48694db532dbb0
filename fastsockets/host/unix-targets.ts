/** Where sockets of this thread have connected to by path: neither Node nor the kernel tells it later. */
const targets = new WeakMap<object, string>()

export function noteTarget(socket: object, path: string): void {
  targets.set(socket, path)
}

export function targetPath(socket: object): string | undefined {
  return targets.get(socket)
}
