/** One finding. Only what is `failed` stands in the way; a `note` is worth knowing. */
export interface Check {
  readonly name: string
  readonly state: 'ok' | 'note' | 'failed'
  readonly detail: string
  /** What to do about it. */
  readonly hint?: string
}
