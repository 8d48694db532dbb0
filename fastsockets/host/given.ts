/** Returns the given object from its constructor, so that a subclass adds its private fields to that object. */
export class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the purpose of this class.
    return object
  }
}
