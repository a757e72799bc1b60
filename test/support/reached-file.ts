/** What a test file leaves behind of the charts it reached. */

/** Where those files are, below the root of the project. */
export const reachedDirectory = 'reports/charts'

/** One of them. */
export interface ReachedFile {
  /** The test file, below the root of the project. */
  readonly file: string
  /** By the id of the chart. */
  readonly charts: Readonly<
    Record<
      string,
      { readonly ways: number; readonly states: readonly string[]; readonly transitions: readonly string[] }
    >
  >
}
