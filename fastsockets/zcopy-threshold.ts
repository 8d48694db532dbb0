import { env } from 'node:process'
export function zcopyThreshold(): number {
  return threshold
}
const threshold = Number(env.FASTSOCKETS_ZCOPY_THRESHOLD ?? 262144)
