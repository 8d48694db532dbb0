/** JSON Schema, by which the daemon checks requests, files and settings. */
import { createRequire } from 'node:module'
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'

/** Tests check our own schemas: checking them against JSON Schema's meta-schema would double the time of a start. */
const OPTIONS = {
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
  meta: false,
  validateSchema: false,
} as const

let ajv: Ajv | undefined

export interface Mistake {
  /** JSON pointer to the mistake; empty if the whole value is wrong. */
  readonly at: string
  readonly detail: string
}

/** Returns the mistake in a value, or undefined. The detail never contains the value. */
export type Check = (value: unknown) => Mistake | undefined

/** Compiles the schema on first use: most schemas are not used while the daemon starts. */
export function compile(schema: object): Check {
  let validate: ValidateFunction | undefined
  return value => {
    validate ??= loadAjv().compile(schema)
    return validate(value) ? undefined : describe(validate.errors?.[0])
  }
}

function loadAjv(): Ajv {
  // By require: for an import, Node would scan the whole file for its exports.
  ajv ??= new (createRequire(import.meta.url)('ajv') as typeof import('ajv')).Ajv(OPTIONS)
  return ajv
}

function describe(error: ErrorObject | undefined): Mistake {
  if (error === undefined) return { at: '', detail: 'is not valid' }
  const { instancePath, keyword, params, message = 'is not valid' } = error
  if (keyword === 'additionalProperties') {
    return {
      at: instancePath,
      detail: `has the unknown property ${JSON.stringify(params.additionalProperty)}`,
    }
  }
  if (keyword === 'enum')
    return { at: instancePath, detail: `must be one of ${params.allowedValues.join(', ')}` }
  return { at: instancePath, detail: message }
}
