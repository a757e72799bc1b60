/** A setup file of every test file: makes `it.prop` and `fc.assert` follow FC_NUM_RUNS, FC_SEED and FC_PATH, as `checkProperty` does. */
import fc from 'fast-check'
import { givenPath, runs, seed } from './property.js'

fc.configureGlobal({
  numRuns: runs,
  seed,
  ...(givenPath !== undefined && { path: givenPath }),
})
