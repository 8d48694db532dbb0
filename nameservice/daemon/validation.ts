/** JSON Schema, as the daemon uses it for what it is sent, told and configured with. */
import { createRequire } from 'node:module'
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'

/** Our own schemas are right, as tests show: to check them against JSON Schema's own would double the time of a start. */
const OPTIONS = {
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
  meta: false,
  validateSchema: false,
} as const

let ajv: Ajv | undefined

export interface Mistake {
  /** JSON pointer to what is wrong, or empty for the whole. */
  readonly at: string
  readonly detail: string
}

/** What is wrong with a value, or undefined. The detail never contains the value. */
export type Check = (value: unknown) => Mistake | undefined

/** The schema is compiled when it is needed first: most of them are not while the daemon starts. */
export function compile(schema: object): Check {
  let validate: ValidateFunction | undefined
  return value => {
    validate ??= loadAjv().compile(schema)
    return validate(value) ? undefined : describe(validate.errors?.[0])
  }
}

function loadAjv(): Ajv {
  // By require: to import it, Node would look through all of its text for what it exports.
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
