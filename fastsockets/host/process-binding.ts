/** With `--pending-deprecation` Node prints a warning, or with `--throw-deprecation` throws, for `process.binding` and `process._tickCallback`. */
export function isDeprecationPending(): boolean {
  const flags = `${process.env.NODE_OPTIONS} ${process.execArgv.join(' ')}`.replaceAll('_', '-')
  return flags.includes('pending-deprecation') || process.env.NODE_PENDING_DEPRECATION === '1'
}

/** A native module of Node by `process.binding`; undefined where there is none, and where it may not be used. */
export function processBinding(name: string): Readonly<Record<string, unknown>> | undefined {
  if (isDeprecationPending()) return undefined
  try {
    const { binding } = process as unknown as { binding(name: string): Readonly<Record<string, unknown>> }
    return binding.call(process, name)
  } catch {
    return undefined
  }
}
