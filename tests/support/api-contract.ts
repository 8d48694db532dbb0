/** The daemon's OpenAPI document, as a judge of its answers. */
import { Ajv, type ValidateFunction } from 'ajv'
import type { Test } from 'tap'
import type { HttpReply, Named } from './named.ts'

interface Schema {
  readonly [keyword: string]: unknown
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly schema: Schema
}

interface Response {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>
}

export interface ContractOperation {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: {
    readonly required: boolean
    readonly content: Readonly<Record<string, { schema: Schema }>>
  }
  readonly responses: Readonly<Record<string, Response>>
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, ContractOperation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const DOCUMENT = 'named'

export class ApiContract {
  readonly document: OpenApi
  readonly #ajv = new Ajv({ strict: false })
  readonly #validators = new Map<object, ValidateFunction>()

  static async of(named: Named): Promise<ApiContract> {
    const { text } = await named.ask('GET', '/v1/openapi.json')
    return new ApiContract(JSON.parse(text))
  }

  private constructor(document: OpenApi) {
    this.document = document
    this.#ajv.addSchema({ ...document, $id: DOCUMENT })
  }

  /** Every operation with its method and path. */
  get operations(): { method: string; path: string; operation: ContractOperation }[] {
    return Object.entries(this.document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation,
      })),
    )
  }

  resolve(schema: Schema): Schema {
    const [, name] = /^#\/components\/schemas\/(\w+)$/.exec(String(schema.$ref)) ?? []
    return name === undefined ? schema : (this.document.components.schemas[name] as Schema)
  }

  /** Fails if the answer is not one that the document promises. */
  check(t: Test, method: string, path: string, reply: HttpReply): void {
    const complaint = this.complaintAbout(method, path, reply)
    if (complaint !== undefined) t.fail(`${method} ${path}: ${complaint}`, { reply })
  }

  complaintAbout(method: string, path: string, { status, headers, json }: HttpReply): string | undefined {
    const operation = this.#operationOf(method, path)
    const response = operation?.responses[status]
    if (operation === undefined)
      return status === 404 || status === 405 || status === 400 ? undefined : 'is not known'
    if (response === undefined) return `${status} is not promised`
    const mediaType = headers['content-type']?.split(';')[0] ?? ''
    if (response.content === undefined) return mediaType === '' ? undefined : `${mediaType} is not promised`
    const promised = response.content[mediaType]
    if (promised === undefined) return `${mediaType} is not promised for ${status}`
    if (promised.schema === undefined) return undefined
    const validate = this.#validator(promised.schema)
    return validate(json) ? undefined : `${status}: ${this.#ajv.errorsText(validate.errors)}`
  }

  #operationOf(method: string, path: string): ContractOperation | undefined {
    const plain = path.split('?')[0] as string
    for (const [template, methods] of Object.entries(this.document.paths)) {
      const pattern = new RegExp(`^${template.replace('{name}', '.+').replace(/\{\w+\}/, '[^/]+')}$`)
      if (pattern.test(plain)) return methods[method.toLowerCase()]
    }
    return undefined
  }

  #validator(schema: Schema): ValidateFunction {
    const known = this.#validators.get(schema)
    if (known !== undefined) return known
    const absolute = '$ref' in schema ? { $ref: `${DOCUMENT}${schema.$ref}` } : schema
    const validate = this.#ajv.compile(absolute)
    this.#validators.set(schema, validate)
    return validate
  }
}
