/** One finding. Only `failed` ones prevent the fast way; a `note` is information. */
export interface Check {
  readonly name: string
  readonly state: 'ok' | 'note' | 'failed'
  readonly detail: string
  /** What to do about it. */
  readonly hint?: string
}
