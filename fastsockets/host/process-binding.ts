/**
 * A native module of Node by `process.binding`; undefined where there is none, where the permission model forbids it, and
 * with `--pending-deprecation`, for which Node would print a warning.
 */
export function processBinding(name: string): Readonly<Record<string, unknown>> | undefined {
  const flags = `${process.env.NODE_OPTIONS} ${process.execArgv.join(' ')}`.replaceAll('_', '-')
  if (flags.includes('pending-deprecation') || process.env.NODE_PENDING_DEPRECATION === '1') return undefined
  try {
    const { binding } = process as unknown as { binding(name: string): Readonly<Record<string, unknown>> }
    return binding.call(process, name)
  } catch {
    return undefined
  }
}
