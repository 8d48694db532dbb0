/**
 * Relinking through the environment: NODE_OPTIONS reaches every Node program that the command starts, at any depth.
 * Paths travel as file URLs, in which spaces and quotes are escaped, so that NODE_OPTIONS needs no quoting.
 */
const REGISTER_FLAG = importFlag(new URL('../register.js', import.meta.url))

/** Set to anything but the empty string, it keeps everything on TCP. */
export const DISABLE_VARIABLE = 'FASTSOCKETS_DISABLE'

export function importFlag(module: URL): string {
  return `--import=${module.href}`
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
