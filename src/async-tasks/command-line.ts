/** Formats a program and its arguments as one line, for people and models. */

/** Joins the program and its arguments in shell syntax. Everything except plain words is quoted. */
export function commandLine(command: readonly string[]): string {
  return command.map((word) => (PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`)).join(' ')
}

const PLAIN_WORD = /^[\w@%+=:,./-]+$/
