/** Replaces placeholders in the arguments of a program. */

/** The text for each placeholder, by its name. */
export type PlaceholderTexts = Readonly<Record<string, string | undefined>>

/**
 * Replaces the placeholders of these names, such as `{goal}`, in one argument. Other text in braces is not changed. The inserted text is not searched
 * again, so a goal that contains `{name}` is passed unchanged.
 */
export function substitute(argument: string, texts: PlaceholderTexts): string {
  // The replacement is a function, because `$&` has a special meaning in a replacement string.
  return argument.replace(/\{([a-z]+(?::[a-z]+)?)\}/g, (placeholder, name: string) =>
    Object.hasOwn(texts, name) ? (texts[name] ?? placeholder) : placeholder,
  )
}
