/**
 * A fast check that accepts the settings of nearly every daemon. Other settings go to the validator, which decides
 * and describes mistakes. Loading the validator would take a fifth of a start.
 */
interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly enum?: readonly unknown[]
}

/** Never true if `schema` refuses the value. Schemas may have no keywords other than these. */
export function isPlainlyRight(schema: Schema, value: unknown): boolean {
  const { type, enum: choices } = schema
  if (choices !== undefined && !choices.includes(value)) return false
  if (type === 'object') return isRightObject(schema, value)
  if (type === 'array') return isRightArray(schema, value)
  if (type === 'integer') return isRightInteger(schema, value)
  return type === 'string' && isRightString(schema, value)
}

function isRightObject({ properties = {} }: Schema, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.entries(value).every(([key, inner]) => {
    const schema = Object.hasOwn(properties, key) ? properties[key] : undefined
    return schema !== undefined && isPlainlyRight(schema, inner)
  })
}

function isRightArray({ items, maxItems = 0 }: Schema, value: unknown): boolean {
  if (!Array.isArray(value) || items === undefined || value.length > maxItems) return false
  return value.every(item => isPlainlyRight(items, item))
}

function isRightInteger({ minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: Schema, value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= minimum && Number(value) <= maximum
}

function isRightString({ maxLength = 0, pattern, enum: choices }: Schema, value: unknown): boolean {
  if (typeof value !== 'string') return false
  // A choice has been checked already.
  if (value.length > maxLength && choices === undefined) return false
  return pattern === undefined || new RegExp(pattern, 'u').test(value)
}
