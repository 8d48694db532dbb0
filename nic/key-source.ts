/** Where the key file of this program is named, besides the environment: in a policy, which the layers above read. */
let find: () => string | undefined = () => undefined

/** `source` returns the key file that the policy of this program names; the environment variable overrides it. */
export function provideKeyFile(source: () => string | undefined): void {
  find = source
}

export function keyFileOfPolicy(): string | undefined {
  return find()
}
