/** Relinking through the environment: NODE_OPTIONS reaches every Node program that the command starts, at any depth. */
import { fileURLToPath } from 'node:url'

const REGISTER_FLAG = preloadFlag(
  new URL(process.features.require_module ? '../register.cjs' : '../register.js', import.meta.url),
)

/** Set to anything but the empty string, it keeps everything on TCP. */
export const DISABLE_VARIABLE = 'FASTSOCKETS_DISABLE'

/**
 * Preloads a module without top-level await. It is required if it can be: Node lets the event loop run while it imports,
 * and a worker of a cluster loses the messages that come meanwhile. A path that NODE_OPTIONS would have to quote travels
 * as a file URL, in which spaces and quotes are escaped.
 */
export function preloadFlag(module: URL): string {
  const path = fileURLToPath(module)
  const isRequired = process.features.require_module && !/[\s"\\]/.test(path)
  return isRequired ? `--require=${path}` : `--import=${module.href}`
}

/** NODE_OPTIONS with `fastsockets/register` in it, once. */
export function relinkedNodeOptions(existing = ''): string {
  return addFlag(existing, REGISTER_FLAG)
}

/** NODE_OPTIONS without the flag that `relinkedNodeOptions` adds. */
export function plainNodeOptions(existing = ''): string {
  return existing
    .split(' ')
    .filter(word => word !== REGISTER_FLAG)
    .join(' ')
}

export function addFlag(nodeOptions: string, flag: string): string {
  if (nodeOptions.split(' ').includes(flag)) return nodeOptions
  return nodeOptions.trim() === '' ? flag : `${nodeOptions} ${flag}`
}
