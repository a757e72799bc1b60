/** The file in which a test file records the states and transitions it reached. */

/** The folder of these files, from the project's root. */
export const reachedDirectory = 'reports/charts'

/** The content of such a file. */
export interface ReachedFile {
  /** The path of the test file, from the project's root. */
  readonly file: string
  /** What was reached, by the id of the machine. */
  readonly charts: Readonly<
    Record<
      string,
      { readonly ways: number; readonly states: readonly string[]; readonly transitions: readonly string[] }
    >
  >
}
