/** A program and its arguments as one line, for people and models. */

/** Joins them as a shell would read them: what is more than a plain word is quoted. */
export function commandLine(command: readonly string[]): string {
  return command.map((word) => (PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`)).join(' ')
}

const PLAIN_WORD = /^[\w@%+=:,./-]+$/
